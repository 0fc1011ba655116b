"use strict";
// Draws each chart when it comes into view. Where that fails, its words stand in its place.
(() => {
  const { config, specs } = JSON.parse(document.getElementById("charts").textContent);
  const drawn = new WeakMap();

  async function draw(figure) {
    const spec = specs[figure.dataset.chart];
    const place = figure.querySelector(".chart");
    const width = Math.floor(place.clientWidth);
    if (!spec || !width || drawn.get(figure) === width) return;
    drawn.set(figure, width);
    const fresh = document.createElement("div");  // apart from `place`, which keeps its own words for who hears the page
    const options = {
      mode: "vega-lite", ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: false, logLevel: 1,
      config,
    };
    try {
      await vegaEmbed(fresh, { width, autosize: { type: "fit-x", contains: "padding" }, ...spec }, options);
      // Groups of marks have a role and no name; the chart's own words stand on `place`.
      for (const group of fresh.querySelectorAll('[role^="graphics-"]:not([aria-label])')) {
        group.removeAttribute("role");
        group.removeAttribute("aria-roledescription");
      }
      place.replaceChildren(fresh);
    } catch (problem) {
      console.warn(`The chart ${figure.dataset.chart} can't be drawn: ${problem}`);
      place.textContent = place.getAttribute("aria-label");
    }
  }

  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const ahead = 200;

  function drawNear() {
    for (const figure of figures) {
      const { top, bottom } = figure.getBoundingClientRect();
      if (!drawn.has(figure) && bottom > -ahead && top < innerHeight + ahead) draw(figure);
    }
  }

  // The rest when nothing else is to be done, so that who prints or saves the page has it whole.
  function drawNext() {
    const next = figures.find((figure) => !drawn.has(figure) && figure.clientWidth);
    if (next) draw(next).then(() => whenIdle(drawNext));
  }
  const whenIdle = (act) => (globalThis.requestIdleCallback ?? setTimeout)(act);

  const resized = new ResizeObserver((changed) => {
    for (const { target } of changed) if (drawn.has(target)) draw(target);
  });
  for (const figure of figures) resized.observe(figure);
  for (const happening of ["scroll", "resize"]) addEventListener(happening, drawNear, { passive: true });
  document.addEventListener("toggle", drawNear, { capture: true });
  drawNear();
  whenIdle(drawNext);
})();
