"use strict";
// Ctrl K and / go to the search field of every page; a page that has a use of its own for / keeps it.
addEventListener("keydown", (press) => {
  const typed = press.target.closest?.("input, textarea, select, [contenteditable]");
  const isCommand = press.key.toLowerCase() === "k" && (press.ctrlKey || press.metaKey) && !press.altKey && !press.shiftKey;
  const isSlash = press.key === "/" && !typed && !press.ctrlKey && !press.metaKey && !press.altKey;
  if (press.defaultPrevented || !(isCommand || isSlash)) return;
  press.preventDefault();
  const field = document.getElementById("find");
  field.focus();
  field.select();
});
