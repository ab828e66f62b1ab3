"use strict";
const nodes = () => document.querySelectorAll("details");
const timeline = document.getElementById("runs");
const only = document.querySelector('[data-do="out"]');
document.addEventListener("click", (event) => {
  const what = event.target.closest("[data-do]")?.dataset.do;
  if (what === "open" || what === "close") {
    for (const node of timeline.querySelectorAll("details.node")) node.open = what === "open";
  } else if (what === "out") {
    const on = timeline.classList.toggle("only-out");
    only.setAttribute("aria-pressed", String(on));
  }
});
function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...nodes()].filter((node) => !node.open);
  for (const node of closed) node.open = true;
});
addEventListener("afterprint", () => {
  for (const node of closed) node.open = false;
  closed = [];
});
