// Draws every chart of the page in the colours of the theme, in the width that it has.
//
// A point with a field `href` leads there. When a script replaces a part of the page, it calls
// `drawAll(part)` for the charts inside.

import { isDark } from "./site.js";
import { themes } from "./chart-themes.js";

const NARROW_BELOW = 560;
const sizeIn = (figure) => (figure.clientWidth < Number(figure.dataset.needs ?? NARROW_BELOW) ? "narrow" : "wide");
const drawn = new Map(); // figure → { width, finalize }

async function draw(figure) {
  const place = figure.querySelector(".drawing");
  await import(place.dataset.vega);
  const size = sizeIn(figure);
  const specification = (name) => JSON.parse(figure.querySelector(`script.${name}`).textContent);
  const spec = specification(size);
  spec.datasets = { ...specification("wide").datasets, ...spec.datasets }; // both widths show the same rows
  const theme = isDark() ? "dark" : "light";
  drawn.get(figure)?.result.finalize();
  const result = await window.vegaEmbed(place, spec, {
    actions: false,
    ast: true,
    config: themes[theme],
    defaultStyle: false,
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  });
  place.dataset.drawn = theme;
  drawn.set(figure, { size, result });
  figure.dispatchEvent(new CustomEvent("drawn", { bubbles: true, detail: { view: result.view } }));
}

function failed(figure, error) {
  figure.querySelector(".drawing").textContent = "The chart could not be drawn; the table says the same.";
  figure.querySelector("details").open = true;
  console.error(error);
}

const attempt = (figure) => draw(figure).catch((error) => failed(figure, error));

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const size = sizeIn(target);
    if (target.clientWidth && drawn.has(target) && drawn.get(target).size !== size) attempt(target);
  }
});

export function drawAll(part = document) {
  for (const figure of part.querySelectorAll("figure.chart")) {
    attempt(figure);
    resized.observe(figure);
  }
}

document.addEventListener("themechange", () => {
  for (const figure of [...drawn.keys()]) {
    if (figure.isConnected) attempt(figure);
    else { drawn.get(figure).result.finalize(); drawn.delete(figure); }
  }
});

drawAll();
