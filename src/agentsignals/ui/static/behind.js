"use strict";
// A click on a chart's mark opens the sessions it counts, as the link of the same words beneath the chart does; a mark
// as small as the point of a line is taken from beside it, too.
(() => {
  const reach = 12;
  let pressed = null;

  const linkOf = (mark) => {
    const links = mark.closest("figure").querySelectorAll(".behind-marks a");
    return [...links].find((link) => link.textContent === mark.getAttribute("aria-label"));
  };

  function distance(mark, { clientX, clientY }) {
    const { left, right, top, bottom } = mark.getBoundingClientRect();
    return Math.hypot(clientX - (left + right) / 2, clientY - (top + bottom) / 2);
  }

  function nearest(chart, click) {
    const marks = [...chart.querySelectorAll('[role="graphics-symbol"][aria-label]')];
    const [near] = marks.sort((a, b) => distance(a, click) - distance(b, click));
    return near && distance(near, click) <= reach ? near : null;
  }

  addEventListener("pointerdown", (press) => { pressed = press; });
  addEventListener("click", (click) => {
    const chart = click.target.closest(".chart");
    const dragged = pressed && Math.hypot(click.clientX - pressed.clientX, click.clientY - pressed.clientY) > 4;
    if (!chart || dragged || click.target.closest(".role-legend")) return;
    const mark = click.target.closest("[aria-label]:not(.chart)") ?? nearest(chart, click);
    const link = mark && linkOf(mark);
    if (link) location.assign(link.href);
  });
})();
