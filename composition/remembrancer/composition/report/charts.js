// Charts, drawn by Vega from the rows that the filters leave.  Colours are variables of the style
// sheet, so that dark, light and print need no second drawing.

const DAYS_DRAWN_MAX = 120, SHARE_DAYS_MAX = 60, SHARE_OWNERS_MAX = 20, LANES_MAX = 12;
const NARROW = 480;
const CEILING_DRAWN_UP_TO = 4;
const SHAPES = ["circle", "square", "diamond", "triangle-up"];
const COLOURS = OUTCOMES.map((outcome) => `var(--${outcome})`);
const CONFIG = {
  background: "transparent", font: "system-ui, sans-serif", aria: false, view: { stroke: null },
  axis: { labelFontSize: 12, titleFontSize: 12, labelColor: "var(--muted)", titleColor: "var(--text)", gridColor: "var(--line)", domainColor: "var(--muted)", tickColor: "var(--muted)", labelLimit: 160 },
  legend: { labelFontSize: 12, titleFontSize: 12, labelColor: "var(--text)", titleColor: "var(--text)", orient: "top", labelLimit: 200 },
};
const byOutcome = { field: "outcome", type: "nominal", title: "outcome", scale: { domain: OUTCOMES, range: COLOURS } };
const views = {};
let drawing = Promise.resolve(), rounds = 0;

/** Draw all charts, one after the other, from the sections' rows; then the page isn't busy. */
function drawCharts() {
  const mine = rounds += 1;
  const days = SECTIONS.spend.found, reservations = SECTIONS.reservations.found;
  drawing = drawing.then(() => draw("chart-spend", spendChart(days)))
    .then(() => draw("chart-share", shareChart(days)))
    .then(() => draw("chart-reservations", timeLine(reservations)))
    .then(() => { if (mine === rounds && !waiting) document.querySelector("main").setAttribute("aria-busy", "false"); });
}

async function draw(name, chart) {
  const figure = document.getElementById(name);
  const host = figure.querySelector(".chart");
  figure.querySelector("figcaption").replaceChildren(chart.title, make("small", {}, chart.text));
  host.setAttribute("aria-label", `${chart.title}. ${chart.text} ${chart.spec ? "The table below has the numbers." : ""}`);
  if (views[name]) views[name].finalize();
  delete views[name];
  if (!chart.spec) return host.replaceChildren(make("p", {}, "Nothing to draw."));
  const inner = make("div", { "aria-hidden": "true" });
  host.replaceChildren(inner);
  const width = Math.max(240, host.clientWidth - 8);
  const spec = { ...chart.spec, width, autosize: { type: "fit-x", contains: "padding" } };
  try {
    views[name] = await vegaEmbed(inner, spec, {
      ast: true, actions: false, renderer: "svg", mode: "vega-lite", defaultStyle: false, config: { ...CONFIG, legend: { ...CONFIG.legend, columns: width < NARROW ? 2 : 5 } },
      tooltip: { disableDefaultStyle: true }, loader: { http: false, file: false },
    });
    return undefined;
  } catch (error) {
    console.error(`${name}: ${error}`);
    return host.replaceChildren(make("p", { class: "failed" }, "This chart couldn't be drawn; the table below has the numbers."));
  }
}

function span(days) {
  return days.length ? `${days[0]} to ${days[days.length - 1]}` : "";
}

/** Charges of each day or month, stacked by outcome, and the ceilings of those who reserved then. */
function spendChart(rows) {
  const dayCount = new Set(rows.map((row) => row.day)).size, isDaily = dayCount <= DAYS_DRAWN_MAX;
  const unit = isDaily ? "day" : "month";
  const title = `Charged per UTC ${unit}, by outcome`;
  if (!rows.length) return { title, text: "No day matches." };
  const sums = new Map();
  let over = 0;
  for (const row of rows) {
    const when = isDaily ? row.day : row.day.slice(0, 7);
    const sum = sums.get(when) || { ceiling: 0, charged: 0, settled: 0, unknown: 0, reconciled: 0, pending: 0 };
    for (const name of Object.keys(sum)) sum[name] += row[name];
    sums.set(when, sum);
    over += row.charged > row.ceiling;
  }
  const times = [...sums.keys()].sort();
  const top = times.reduce((best, when) => (sums.get(when).charged > sums.get(best).charged ? when : best));
  const most = sums.get(top).charged;
  const [low, high] = times.map((when) => sums.get(when).ceiling).reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [Infinity, 0]);
  const isDrawn = low <= CEILING_DRAWN_UP_TO * most;
  const text = `${span(times)}. Most in ${top}: ${usd(most)} USD. `
    + `Ceilings of the owners who reserved, on the days they did: ${usd(low)} to ${usd(high)} USD a ${unit}, `
    + `${isDrawn ? "drawn as a line" : "above what is drawn"}. ${over ? `Over the ceiling: ${number(over)} owner days.` : "No owner was over the ceiling on any day."}`;
  const x = {
    field: "when", type: "temporal", timeUnit: isDaily ? "utcyearmonthdate" : "utcyearmonth", title: `${unit} (UTC)`,
    axis: { labelOverlap: true, format: isDaily ? "%Y-%m-%d" : "%Y-%m" },
  };
  const y = { field: "usd", type: "quantitative", title: "USD" };
  const bars = times.flatMap((when) => OUTCOMES.map((outcome) => ({ when, outcome, usd: sums.get(when)[outcome] / 1e6 })).filter((one) => one.usd));
  const layer = [{
    data: { values: bars }, mark: { type: "bar", stroke: "var(--page)", strokeWidth: 0.5 },
    encoding: { x, y, color: byOutcome, tooltip: [{ field: "when", type: "nominal", title: unit }, { field: "outcome", type: "nominal" }, { ...y, format: ".6f" }] },
  }];
  if (isDrawn) layer.push({
    data: { values: times.map((when) => ({ when, usd: sums.get(when).ceiling / 1e6 })) },
    mark: { type: "line", interpolate: "step", strokeDash: [6, 3], stroke: "var(--text)", strokeWidth: 1.5, point: { filled: true, fill: "var(--text)", size: 20 } },
    encoding: { x: { ...x, bandPosition: 0.5 }, y },
  });
  return { title, text, spec: { height: 220, layer } };
}

/** Owners by days: how much of the ceiling was used. */
function shareChart(rows) {
  const title = "Share of the ceiling, by owner and day";
  const totals = new Map();
  for (const row of rows) totals.set(row.owner, (totals.get(row.owner) || 0) + row.charged);
  const owners = [...totals].sort((a, b) => b[1] - a[1]).slice(0, SHARE_OWNERS_MAX).map(([one]) => one);
  const all = [...new Set(rows.map((row) => row.day))].sort(), days = all.slice(-SHARE_DAYS_MAX);
  if (!days.length) return { title, text: "No day matches." };
  const kept = new Set(owners);
  const values = rows.filter((row) => kept.has(row.owner) && row.day >= days[0]).map((row) => ({
    day: row.day, owner: ownerName(row.owner), share: row.ceiling ? row.charged / row.ceiling : 1, usd: row.charged / 1e6,
  }));
  const highest = values.reduce((best, one) => (one.share > best.share ? one : best), values[0]);
  const text = `${span(days)}${all.length > days.length ? `, the latest ${days.length} of ${all.length} days` : ""}; `
    + `${totals.size > owners.length ? `the ${owners.length} of ${totals.size} owners with the highest charges` : `${owners.length} owners`}. `
    + `The strongest colour is a ceiling used up. Highest: ${(100 * highest.share).toFixed(1)} % by ${highest.owner} on ${highest.day}.`;
  return { title, text, spec: {
    height: 22 * owners.length, data: { values }, mark: { type: "rect", stroke: "var(--line)", strokeWidth: 1 },
    encoding: {
      x: { field: "day", type: "ordinal", title: "day (UTC)", axis: { labelOverlap: true, labelAngle: 0 } },
      y: { field: "owner", type: "nominal", title: null, sort: owners.map(ownerName) },
      color: { condition: { test: "datum.share > 1", value: "var(--bad)" }, value: "var(--settled)" },
      opacity: { field: "share", type: "quantitative", title: "share of the ceiling", scale: { domain: [0, 1], range: [0.08, 1], clamp: true }, legend: { format: ".0%", values: [0, 0.25, 0.5, 0.75, 1] } },
      tooltip: [{ field: "owner", type: "nominal" }, { field: "day", type: "nominal" }, { field: "share", type: "quantitative", format: ".1%" }, { field: "usd", type: "quantitative", format: ".6f" }],
    },
  } };
}

/** Each reservation where it was admitted, in its owner's lane. */
function timeLine(rows) {
  const title = "Reservations by time of admission, one lane an owner";
  if (!rows.length) return { title, text: "No reservation matches." };
  const counts = new Map(), outcomes = new Map();
  for (const row of rows) {
    counts.set(row.owner, (counts.get(row.owner) || 0) + 1);
    outcomes.set(row.outcome, (outcomes.get(row.outcome) || 0) + 1);
  }
  const lanes = new Set([...counts].sort((a, b) => b[1] - a[1]).slice(0, LANES_MAX).map(([one]) => one));
  const others = `${counts.size - lanes.size} other owners`;
  const values = rows.map((row) => ({
    at: row.at, admitted: row.at.slice(0, 19).replace("T", " "), whose: ownerName(row.owner), owner: lanes.has(row.owner) ? ownerName(row.owner) : others, outcome: row.outcome, kind: row.kind, id: row.id, charged: row.charged / 1e6,
  }));
  const held = SECTIONS.reservations.all;
  const text = `${number(rows.length)} reservations${held.count > held.rows.length ? ` of the latest ${number(held.rows.length)}; the log has ${number(held.count)}` : ""}, `
    + `${rows[rows.length - 1].at.slice(0, 16).replace("T", " ")} to ${rows[0].at.slice(0, 16).replace("T", " ")} UTC: `
    + `${[...outcomes].map(([outcome, count]) => `${number(count)} ${outcome}`).join(", ")}.`;
  return { title, text, spec: {
    height: 26 * (lanes.size + (counts.size > lanes.size)), data: { values }, mark: { type: "point", filled: true, size: 50, opacity: 0.85 },
    encoding: {
      x: { field: "at", type: "temporal", title: "admitted (UTC)", scale: { type: "utc" }, axis: { labelOverlap: true } },
      y: { field: "owner", type: "nominal", title: null, sort: [...[...lanes].map(ownerName), others] },
      color: byOutcome, shape: { ...byOutcome, scale: { domain: OUTCOMES, range: SHAPES } },
      tooltip: ["id", "whose", "kind", "outcome", "admitted"].map((field) => ({ field, type: "nominal" })).concat({ field: "charged", type: "quantitative", format: ".6f" }),
    },
  } };
}
