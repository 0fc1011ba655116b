"use strict";
// A click on a chart's mark opens the sessions it counts, as the link of the same words beneath the chart does.
document.addEventListener("click", (click) => {
  const mark = click.target.closest(".chart [aria-label]");
  const links = mark?.closest("figure")?.querySelectorAll(".behind-marks a") ?? [];
  const words = mark?.getAttribute("aria-label");
  const link = [...links].find((other) => other.textContent === words);
  if (link) location.assign(link.href);
});
