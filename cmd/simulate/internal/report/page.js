"use strict";
(() => {
  const grid = JSON.parse(document.getElementById("grid").textContent);
  const panel = document.getElementById("what-if");
  const field = name => panel.querySelector("[name=" + name + "]");
  const three = x => x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x.toFixed(2);
  const show = () => {
    const [l, w, b, c] = ["layout", "weights", "copyback", "context"].map(n => +field(n).value);
    const x = grid.cells[((l * grid.weights.length + w) * grid.copyback.length + b) * grid.contexts.length + c];
    panel.querySelector(".at").textContent = grid.contexts[c];
    panel.querySelector("output").textContent = three(x.r) + " tok/s  (90 %: " + three(x.l) + "–" + three(x.h) + "), bound by " + x.b +
      (x.n ? ". Against it: " + x.n : "");
  };
  panel.hidden = false;
  panel.addEventListener("input", show);
  show();
})();
