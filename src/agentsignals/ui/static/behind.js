"use strict";
// A click on a chart's mark opens the sessions it counts, as the link of the same words beneath the chart does; a mark
// as small as the point of a line is taken from beside it, too.
(() => {
  const reach = 12;
  let pressed = null;

  function away(mark, { clientX, clientY }) {
    const { left, right, top, bottom } = mark.getBoundingClientRect();
    return Math.hypot(clientX - (left + right) / 2, clientY - (top + bottom) / 2);
  }

  function markAt(chart, click, opens) {
    const hit = click.target.closest("[aria-label]:not(.chart)");
    if (hit && opens(hit)) return hit;
    const marks = [...chart.querySelectorAll("[aria-label]")].filter(opens);
    const near = marks.map((mark) => [away(mark, click), mark]).sort(([a], [b]) => a - b)[0];
    return near && near[0] <= reach ? near[1] : null;
  }

  addEventListener("pointerdown", (press) => { pressed = press; });
  addEventListener("click", (click) => {
    const chart = click.target.closest(".chart");
    const dragged = pressed && Math.hypot(click.clientX - pressed.clientX, click.clientY - pressed.clientY) > 4;
    if (!chart || dragged || click.target.closest(".role-legend")) return;
    const links = chart.closest("figure").querySelectorAll(".behind-marks a");
    const byWords = new Map([...links].map((link) => [link.textContent, link.href]));
    const mark = markAt(chart, click, (other) => byWords.has(other.getAttribute("aria-label")));
    if (mark) location.assign(byWords.get(mark.getAttribute("aria-label")));
  });
})();
