// Everything here only makes smoother what works without it.
"use strict";
(() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const charts = [];

  function draw(place, data) {
    const names = place.dataset.series.split(",");
    const titles = place.dataset.titles.split(",");
    const colours = ["--link", "--warn", "--good", "--bad"];
    const rows = [data.time, ...names.map((name) => data[name])];
    const axis = { stroke: css("--quiet"), grid: { stroke: css("--line") }, ticks: { stroke: css("--line") } };
    place.textContent = "";
    const chart = new uPlot({
      title: place.dataset.title,
      width: Math.max(place.clientWidth - 16, 200),
      height: 220,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), document.documentElement.dataset.zone),
      series: [{}, ...titles.map((label, at) => ({ label, stroke: css(colours[at]), width: 2, dash: at ? [6, 3] : [] }))],
      axes: [axis, { ...axis, size: 70 }],
    }, rows, place);
    charts.push([place, chart]);
  }

  async function history() {
    const places = document.querySelectorAll("[data-series]");
    if (!places.length || typeof uPlot === "undefined") return;
    const answer = await fetch("/history.json", { credentials: "same-origin" });
    if (!answer.ok) return;
    const data = await answer.json();
    charts.length = 0;
    for (const place of places) draw(place, data);
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const within = event.target.closest("input, textarea, select");
    if (event.key === "/" && !within) {
      const search = document.querySelector("input[type=search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "?" && !within) {
      const help = document.getElementById("keys");
      if (help) { help.open = !help.open; help.querySelector("summary").focus(); }
    }
  }

  function copies() {
    if (!navigator.clipboard) return;
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
      });
    }
  }

  function zones() {
    const choice = document.getElementById("zone");
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (choice && own && ![...choice.options].some((each) => each.value === own)) choice.add(new Option(`${own} (local)`, own));
  }

  addEventListener("keydown", keys);
  addEventListener("resize", () => {
    for (const [place, chart] of charts) chart.setSize({ width: Math.max(place.clientWidth - 16, 200), height: 220 });
  });
  addEventListener("DOMContentLoaded", () => {
    history();
    copies();
    zones();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) setInterval(() => { if (!document.hidden) history(); }, 30000);
  });
})();
