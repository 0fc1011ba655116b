"use strict";
// Tables sort by a click on a heading, charts tell what is pointed at. The page says the same without either.
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
    const mark = event.target.closest?.("figure .role-mark [aria-label]");
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
})();
