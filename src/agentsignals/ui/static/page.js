"use strict";
// Tables sort by a click on a heading, charts tell what is pointed at, grow, and are saved. The page says the same
// without any of it.
(() => {
  const number = (text) => (text.trim() === "" ? NaN : Number(text));

  function compare(a, b) {
    const x = number(a), y = number(b);
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b);
  }

  function sort(heading, place) {
    const table = heading.closest("table");
    const up = heading.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    const key = (row) => row.cells[place].dataset.v ?? row.cells[place].textContent;
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === "");  // what is missing stays last, whichever way
      return up ? compare(x, y) : compare(y, x);
    });
    table.tBodies[0].append(...rows);
  }

  for (const heading of document.querySelectorAll("table.sortable thead th")) {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(heading, heading.cellIndex));
  }

  const tip = document.getElementById("tip");

  function show(event) {
    const mark = event.target.closest?.("figure .chart .mark[aria-label]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("aria-label");
    const room = 12;
    const left = Math.min(event.clientX + room, innerWidth - tip.offsetWidth - room);
    const above = event.clientY - tip.offsetHeight - room;
    tip.style.left = `${Math.max(room, left)}px`;
    tip.style.top = `${above > room ? above : event.clientY + room}px`;
  }

  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A picture on its own: colours resolved, and the words that stand beside it on the page above it.
  function picture(figure) {
    const colours = getComputedStyle(document.documentElement);
    const svg = figure.querySelector("svg").cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const told = [figure.querySelector("figcaption b"), ...figure.querySelectorAll(".soft")].map((e) => e.textContent);
    const size = 13, line = 18, head = told.length * line + 8;
    const around = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const add = (name, attributes, text = "") => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      made.textContent = text;
      around.append(made);
    };
    const wide = Math.max(width, ...told.map((text) => text.length * size * 0.5)) + 16, high = height + head + 16;
    for (const [key, value] of [["width", wide], ["height", high], ["viewBox", `0 0 ${wide} ${high}`]]) {
      around.setAttribute(key, value);
    }
    around.setAttribute("font-family", "sans-serif");
    add("rect", { width: wide, height: high, fill: "var(--paper)" });
    told.forEach((text, n) => add("text", {
      x: 8, y: 8 + size + n * line, "font-size": n ? size - 1 : size, "font-weight": n ? "normal" : "bold",
      fill: n ? "var(--soft)" : "var(--ink)",
    }, text));
    for (const [key, value] of [["x", 8], ["y", head + 8], ["width", width], ["height", height]]) {
      svg.setAttribute(key, value);
    }
    around.append(svg);
    const text = new XMLSerializer().serializeToString(around)
      .replace(/var\((--[a-z0-9]+)\)/g, (_, name) => colours.getPropertyValue(name).trim());
    return { blob: new Blob([text], { type: "image/svg+xml" }), wide, high };
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function savePixels({ blob, wide, high }, name) {
    const scale = 2, image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = wide * scale;
      canvas.height = high * scale;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((pixels) => save(pixels, name));
      URL.revokeObjectURL(image.src);
    };
    image.src = URL.createObjectURL(blob);
  }

  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const name = figure.dataset.chart, bar = document.createElement("p");
    bar.className = "actions";
    const button = (text, label, act) => {
      const made = document.createElement("button");
      made.textContent = text;
      made.setAttribute("aria-label", `${label}: ${figure.querySelector("figcaption b").textContent}`);
      made.addEventListener("click", () => act(made));
      bar.append(made);
    };
    button("larger", "Larger or smaller", (made) => {
      made.setAttribute("aria-pressed", figure.classList.toggle("large"));
      made.textContent = figure.classList.contains("large") ? "smaller" : "larger";
    });
    button("SVG", "Save as SVG", () => save(picture(figure).blob, `${name}.svg`));
    button("PNG", "Save as PNG", () => savePixels(picture(figure), `${name}.png`));
    figure.append(bar);
  }
})();
