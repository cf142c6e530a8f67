// Begin: fill the filters, show everything, and follow changes.

fillChoices();
refresh(true);
filters.addEventListener("input", () => soon({ rows: true }));
filters.addEventListener("reset", () => soon({ rows: true }));
filters.addEventListener("submit", (event) => event.preventDefault());

let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  soon({ rows: false });
});

// On paper nothing can be opened.
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("#selections details")) {
    details.fill();
    details.open = true;
  }
});
