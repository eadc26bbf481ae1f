// What the law leaves over, on the scale of its noise: no pattern should be left.

function drawResiduals(data, feature, log) {
  const { scale, suffix } = unitOf(data);
  const model = modelOf(data);
  const own = model.several || !data.residual?.some((value) => value != null);
  const relative = own || data.noise?.distribution === "lognormal";
  const factor = relative ? 1 : scale;
  const y = own ? standardised(data, model) : (data.residual ?? []).map((value) => (value == null ? null : value * factor));
  const fitted = view.against === "fitted" || feature == null;
  const x = !fitted ? horizontal(data, feature) : own ? meansOf(data, model) : fittedValues(data, relative, scale);
  const unit = relative ? "" : suffix;
  const hover = `%{y:.3~g} at %{x:.4~s}<br>%{customdata}<extra></extra>`;
  const across = log && positive(x);
  const words = fitted ? `fitted ${shortened(data.metric)}` : shortened(feature);
  const horizontalAxis = axis(words, across, fitted ? suffix : "");
  if (!fitted) horizontalAxis.range = rangeOf("law-chart", horizontalAxis.type);
  const vertical = axis(own ? "residual / σ of its law" : relative ? "log y − log law" : "y − law", false, unit);
  const traces = pointTraces(data, null, x, y, hover);
  Plotly.react("residual-chart", traces, layout(230, horizontalAxis, vertical, scaleLines(own ? 1 : (data.noise?.scale ?? 0) * factor)), CONFIG);
}

// The range the law's chart settled on, so that both charts stand one above the other.
function rangeOf(id, type) {
  const other = document.getElementById(id).layout.xaxis;
  return other.type === type && other.range ? [...other.range] : undefined;
}

// A residual is a distance from the law, so the point and its residual give the law's value back.
function fittedValues(data, relative, scale) {
  return data.y.map((value, i) => {
    const residual = data.residual?.[i];
    if (residual == null) return null;
    return (relative ? value * Math.exp(-residual) : value - residual) * scale;
  });
}

// Of several laws each point's own: their noises differ, so residuals are in units of it.
function standardised(data, model) {
  return data.y.map((y, i) => {
    const law = model.scopes[model.member[i]]?.law;
    if (!law || y == null) return null;
    const [mean, spread] = argumentsAt(law, model.rows[i]);
    const residual = { LogNorm: () => (Math.log(y / mean) + spread ** 2 / 2) / spread, Norm: () => (y - mean) / spread, Exp: () => y / mean - 1,
      Binom: () => (y - mean * spread) / Math.sqrt(mean * spread * (1 - spread)) }[law.name]();
    return finiteOr(residual);
  });
}

const meansOf = (data, model) => data.y.map((_, i) => {
  const law = model.scopes[model.member[i]]?.law;
  return law ? finiteOr(meanAt(law, model.rows[i]) * data.scale) : null;
});

// Zero, and two standard deviations of the noise either side.
function scaleLines(sigma) {
  const level = (y, dash) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, layer: "below",
    line: { color: colour(dash === "solid" ? "law" : "line"), width: dash === "solid" ? 1.5 : 1, dash } });
  const note = (y, text) => ({ xref: "paper", x: 1, y, xanchor: "right", yanchor: "bottom", showarrow: false, text,
    font: { size: 10, color: colour("quiet") } });
  if (!(sigma > 0)) return { shapes: [level(0, "solid")] };
  return { shapes: [level(0, "solid"), level(2 * sigma, "dot"), level(-2 * sigma, "dot")],
    annotations: [note(2 * sigma, "+2σ"), note(-2 * sigma, "−2σ")] };
}
