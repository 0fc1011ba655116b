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
// A button with a command copies it.
addEventListener("click", async (press) => {
  const button = press.target.closest?.("button[data-copy]");
  if (!button) return;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    button.replaceWith(Object.assign(document.createElement("code"), { textContent: button.dataset.copy }));
  }
  setTimeout(() => { button.textContent = before; }, 1500);
});
