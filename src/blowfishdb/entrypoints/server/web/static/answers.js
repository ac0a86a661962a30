// Says how many answers are ticked, and lets exactly two be compared.

const log = document.getElementById("log");

if (log) {
  const said = document.getElementById("ticked");
  const compare = document.getElementById("compare");
  const before = said.textContent;
  const update = () => {
    const ticked = log.querySelectorAll("input[name=pick]:checked").length;
    said.textContent = ticked === 0 ? before : `${ticked} selected${ticked === 2 ? "" : "; two can be compared"}.`;
    compare.disabled = ticked !== 2;
  };
  log.addEventListener("change", update);
  window.addEventListener("pageshow", update);
  update();
}
