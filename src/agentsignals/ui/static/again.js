"use strict";
// What is still being made is there when the page is asked for again; a form that somebody fills in is left alone.
(() => {
  let touched = false;
  document.addEventListener("input", () => { touched = true; });
  setTimeout(() => { if (!touched) location.reload(); }, 4000);
})();
