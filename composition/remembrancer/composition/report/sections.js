// Sections: which rows they have, how a row is shown, and their pages of rows.

const label = (title, of) => ({ title, of, className: "label" });
const id = (title, of) => ({ title, className: "wide", of: (row) => make("span", { class: "id" }, of(row)) });
const amount = (title, of) => ({ title, of, className: "number" });
const owner = label("Owner", (row) => ownerName(row.owner));

const SECTIONS = {
  findings: {
    id: "findings", name: "findings", all: DATA.findings, rows: DATA.findings.rows,
    caption: "What doesn't hold",
    none: "Nothing was found.",
    day: (row) => dayOf(row.at),
    ids: (row) => [row.invariant, row.stream, row.about, row.found, row.expected],
    columns: [
      { title: "Rule", className: "wide", of: (row) => make("span", {}, make("strong", {}, row.invariant), row.sentence ? make("br") : "", row.sentence) },
      id("Where", (row) => row.where),
      owner,
      label("Expected", (row) => row.expected),
      label("Found", (row) => row.found),
      { title: "When (UTC)", of: (row) => time(row.at) },
    ],
  },
  spend: {
    id: "spend", name: "owner days", all: DATA.days, rows: DATA.days.rows,
    caption: "Charges per owner and UTC day, in USD",
    none: "Nothing was spent.",
    day: (row) => row.day,
    kinds: "reservation", hasOutcome: true,
    narrow(want) {
      const isReservation = want.kindOf === this.kinds;
      return this.rows.filter((row) => wanted(this, row, want)).map((row) => summed(row, row.cells.filter(
        ([kind, outcome]) => (!isReservation || kind === want.kind) && (!want.outcome || outcome === want.outcome),
      ))).filter((row) => row.requests);
    },
    columns: [
      { title: "Day", of: (row) => make("time", { datetime: row.day }, row.day) }, owner,
      amount("Requests", (row) => number(row.requests)),
      amount("of at most", (row) => number(row.ceilingRequests)),
      ...OUTCOMES.map((outcome) => amount(outcome, (row) => usd(row[outcome]))),
      amount("Charged", (row) => usd(row.charged)),
      amount("Ceiling", (row) => usd(row.ceiling)),
      amount("Share", (row) => make("span", row.charged > row.ceiling ? { class: "over" } : {}, share(row), row.charged > row.ceiling ? " over" : "")),
    ],
  },
  reservations: {
    id: "reservations", name: "reservations", all: DATA.reservations, rows: DATA.reservations.rows,
    caption: "Reservations, latest first",
    none: "Nothing was reserved.",
    day: (row) => row.day,
    kinds: "reservation", kind: (row) => row.kind,
    hasOutcome: true, outcome: (row) => row.outcome,
    ids: (row) => [row.id, ownerName(row.owner), row.reason],
    columns: [
      { title: "Admitted (UTC)", of: (row) => time(row.at) }, owner,
      { title: "Kind", of: (row) => row.kind },
      { title: "Outcome", of: (row) => make("span", { class: `outcome ${OUTCOMES.includes(row.outcome) ? row.outcome : ""}` }, row.outcome) },
      { title: "After", of: (row) => elapsed(row) },
      amount("Reserved", (row) => usd(row.reserved)),
      amount("Charged", (row) => usd(row.charged)),
      amount("Tokens", (row) => (row.tokens === null ? "" : number(row.tokens))),
      label("Why", (row) => row.reason),
      id("Reservation", (row) => row.id),
    ],
  },
  selections: {
    id: "selections", name: "selections", all: DATA.selections, rows: DATA.selections.rows,
    none: "Nothing was selected.",
    day: (row) => dayOf(row.at),
    kinds: "selection", kind: (row) => row.kind,
    ids: (row) => [
      row.session, row.stage, row.principal, ownerName(row.owner), ...row.entries.map((one) => one[0]),
      ...row.leftOut.flatMap(([, ids]) => ids),
      ...row.packs.flatMap((pack) => [pack.digest, ...pack.included, ...pack.omitted.map(([one]) => one)]),
    ],
    show: showSelection,
  },
  erasures: {
    id: "erasures", name: "erasures", all: DATA.erasures, rows: DATA.erasures.rows,
    caption: "Erased entries, latest first",
    none: "Nothing was erased.",
    day: (row) => dayOf(row.at),
    kinds: "entry", kind: (row) => row.kind,
    ids: (row) => [row.id, row.scope, row.reason, ownerName(row.owner)],
    columns: [
      { title: "Erased (UTC)", of: (row) => time(row.at) }, owner,
      id("Entry", (row) => row.id),
      label("Scope", (row) => row.scope),
      label("Kind", (row) => row.kind),
      { title: "Sensitivity", of: (row) => row.sensitivity },
      amount("Versions", (row) => number(row.versions)),
      { title: "Remembered (UTC)", of: (row) => time(row.since) },
      label("Why", (row) => row.reason),
    ],
  },
};

for (const section of Object.values(SECTIONS)) {
  section.narrow ??= function narrow(want) { return this.rows.filter((row) => wanted(this, row, want)); };
}

/** Return an owner's day with the sums of some of its cells. */
function summed(row, cells) {
  const sums = { ...row, requests: 0, charged: 0, settled: 0, unknown: 0, reconciled: 0, pending: 0 };
  for (const [, outcome, count, charged] of cells) {
    sums.requests += count;
    sums.charged += charged;
    sums[outcome] = (sums[outcome] || 0) + charged;
  }
  return sums;
}

function share(row) {
  return row.ceiling ? `${(100 * row.charged / row.ceiling).toFixed(1)} %` : "no room";
}

function elapsed(row) {
  if (!row.end) return "";
  const seconds = (Date.parse(row.end) - Date.parse(row.at)) / 1000;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return seconds < 7200 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(0)} h`;
}

/** Show the current page of a section. */
function showSection(section, want) {
  const place = document.getElementById(section.id);
  const from = section.page * section.size;
  const rows = section.found.slice(from, from + section.size);
  place.querySelector(".shown").textContent = howMany(section, from, rows.length) + narrowedBy(section, want);
  const parts = rows.length
    ? [section.show ? make("div", {}, ...rows.map(section.show)) : tableOf(section, section.caption, section.columns, rows)]
    : [make("p", {}, section.rows.length ? "Nothing matches the filters." : section.none)];
  if (section.found.length > section.size) parts.push(pagesOf(section, want));
  place.querySelector(".rows").replaceChildren(...parts);
}

function howMany(section, from, shown) {
  const { found, rows, all, name } = section;
  if (!rows.length) return "";
  const range = shown ? `Rows ${number(from + 1)} to ${number(from + shown)} of ${number(found.length)} ${name}` : `None of ${number(rows.length)} ${name}`;
  const kept = all.count > rows.length ? ` This page holds the latest ${number(rows.length)} of ${number(all.count)} in the log.` : "";
  return `${range}.${kept}`;
}

let tables = 0;
function tableOf(section, caption, columns, rows) {
  const name = `t-${section.id}-${tables += 1}`;
  const head = columns.map((one) => make("th", { scope: "col", class: one.className || "" }, one.title));
  const body = rows.map((row) => make("tr", {}, ...columns.map(
    (one) => make("td", { class: one.className || "" }, one.of(row)))));
  // What may be wider than the screen must be reachable by keyboard.
  return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": name },
    make("table", {}, make("caption", { id: name }, caption), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}

function pagesOf(section, want) {
  const last = Math.ceil(section.found.length / section.size) - 1;
  const button = (text, to, key) => {
    const isOff = to === section.page;
    // Not `disabled`: the focus would be lost on reaching the end.
    const one = make("button", { type: "button", "data-key": key, "aria-label": `${text} page of ${section.name}`, "aria-disabled": String(isOff) }, text);
    one.addEventListener("click", () => {
      if (isOff) return;
      section.page = to;
      showSection(section, want);
      document.querySelector(`#${section.id} [data-key="${key}"]`).focus();
      document.getElementById("told").textContent = `Page ${to + 1} of ${last + 1} of ${section.name}.`;
    });
    return one;
  };
  return make("div", { class: "pages", role: "group", "aria-label": `Pages of ${section.name}` },
    button("First", 0, "first"), button("Previous", Math.max(0, section.page - 1), "previous"),
    make("span", {}, `Page ${number(section.page + 1)} of ${number(last + 1)}`),
    button("Next", Math.min(last, section.page + 1), "next"), button("Last", last, "last"));
}

/** One selection: a line, and on opening all about it. */
function showSelection(row) {
  const packs = row.packsCount === 1 ? "1 pack" : `${number(row.packsCount)} packs`;
  const summary = make("summary", {}, make("strong", {}, make("bdi", {}, row.session), " / ", make("bdi", {}, row.stage)),
    ` ${number(row.entriesCount)} selected, ${packs} `,
    make("small", {}, time(row.at), " ", make("bdi", {}, ownerName(row.owner)), `, ${row.kind}, ${row.mode}`));
  const details = make("details", {}, summary);
  details.addEventListener("toggle", () => fillSelection(details, row));
  details.fill = () => fillSelection(details, row);
  return details;
}

function fillSelection(details, row) {
  if (details.childElementCount > 1) return;
  const facts = [
    ["Asked for by", row.principal], ["At most", row.limit], ["Found by", row.mode + (row.modeReason ? ` (${row.modeReason})` : "")],
    ["Filter", row.filter], ["Vectors of", row.tuple || "none"],
  ];
  details.append(make("dl", { class: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, make("bdi", {}, value))))));
  const columns = [
    amount("Rank", (one) => one.rank), id("Entry", (one) => one[0]), amount("Version", (one) => one[1]),
    amount("Score", (one) => fixed(one[2])), amount("By vector: rank", (one) => one[3] ?? ""), amount("cosine", (one) => fixed(one[4])),
    amount("By words: rank", (one) => one[5] ?? ""), amount("BM25", (one) => fixed(one[6])),
  ];
  const ranked = row.entries.map((one, index) => Object.assign([...one], { rank: index + 1 }));
  const more = row.entriesCount - ranked.length;
  if (ranked.length) details.append(tableOf(SECTIONS.selections, `Selected entries of ${row.session} / ${row.stage}${more ? `; ${number(more)} more` : ""}`, columns, ranked));
  details.append(make("h3", {}, `Left out: ${number(row.leftOutCount)}`), ...row.leftOut.map(([reason, ids]) => ids_(`because of ${reason}`, ids)));
  const named = row.leftOut.reduce((sum, [, ids]) => sum + ids.length, 0);
  if (row.leftOutCount > named) details.append(make("p", { class: "shown" }, `The first ${number(named)} are named here.`));
  for (const pack of row.packs) details.append(...aboutPack(pack));
  if (row.packsCount > row.packs.length) details.append(make("p", { class: "shown" }, `The latest ${row.packs.length} of ${number(row.packsCount)} packs are shown.`));
}

function aboutPack(pack) {
  const why = new Map();
  for (const [one, reason] of pack.omitted) why.set(reason, [...(why.get(reason) || []), one]);
  return [
    make("h3", {}, `Pack ${pack.number}`),
    make("p", {}, time(pack.at), ` UTC, ${number(pack.tokens)} of ${number(pack.budget)} tokens by `, make("bdi", {}, pack.counter), ", digest ", make("span", { class: "id" }, pack.digest)),
    ids_(`in it: ${number(pack.includedCount)}`, pack.included),
    ...[...why].map(([reason, ids]) => ids_(`not in it, because of ${reason}`, ids)),
    ...(pack.included.length < pack.includedCount || pack.omitted.length < pack.omittedCount
      ? [make("p", { class: "shown" }, `The first ${pack.included.length} of ${number(pack.includedCount)} in it and ${pack.omitted.length} of ${number(pack.omittedCount)} not in it are named.`)] : []),
  ];
}

function ids_(title, ids) {
  return make("div", {}, make("p", {}, title), ids.length ? make("ul", { class: "ids" }, ...ids.map((one) => make("li", {}, make("bdi", { class: "id" }, one)))) : "");
}

function fixed(value) {
  return value === null ? "" : value.toFixed(4);
}
