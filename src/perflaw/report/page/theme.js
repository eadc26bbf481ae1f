// What all charts share: colours of the page's style, text made safe for Plotly, the frame.

const MAX_LEGEND = 10;
const RUN_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8a7f00", "#7b61c4", "#8c564b", "#7f7f7f"];
const RUN_SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "triangle-down", "star", "hexagon", "pentagon"];

// Light or dark as the system is, until the person says otherwise; paper is light.
function setTheme(theme) {
  view.theme = theme;
  const dark = theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  view.redraw();
  drawTrend();
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Plotly reads a small HTML (<b>, <a href>) and entities in every text: names of the target must not reach it so.
const safe = (text) => String(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c])
  .replace(/[\u202a-\u202e\u2066-\u2069]/g, "");
const shortened = (text) => safe(text.length > 60 ? `${text.slice(0, 59)}…` : text);

const unitOf = (data) => ({ scale: data.scale, suffix: data.unit });

function axis(title, log, suffix = "") {
  return {
    title: { text: title, font: { size: 12 } }, type: log ? "log" : "linear", ticksuffix: suffix, exponentformat: "SI", minexponent: suffix === "s" ? 0 : 3,
    gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("grid"), zeroline: false,
    showline: true, automargin: true, ...(log ? { dtick: null, minor: { showgrid: false } } : {}),
  };
}

function layout(height, xaxis, yaxis, more) {
  return {
    height, xaxis, yaxis, margin: { l: 64, r: 12, t: 8, b: 44 }, hovermode: "closest", showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("text") },
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("text") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("quiet"), activecolor: colour("accent"), orientation: "v" },
    legend: { orientation: "h", traceorder: "normal", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 } }, ...more,
  };
}

// Buttons are listed, not removed: Plotly's own set holds one that uploads the chart to its makers' server.
const CONFIG = { responsive: true, displaylogo: false, showTips: false, showSendToCloud: false, plotlyServerURL: "",
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };

