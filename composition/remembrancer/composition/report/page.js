"use strict";
// State and filters of the page.  Every name below was given by somebody: it enters the page as
// text only, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);
const OUTCOMES = ["settled", "unknown", "reconciled", "pending"];
const REDRAW_AFTER_MS = 120;

DATA.days.rows = DATA.days.rows.map(([owner, day, ceiling, ceilingRequests, cells]) => ({ owner, day, ceiling, ceilingRequests, cells }));

/** Return an element; children are elements or text. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined).map(
    (child) => (child instanceof Node ? child : String(child))));
  return element;
}

function usd(quanta) {
  return `${Math.floor(quanta / 1e6)}.${String(quanta % 1e6).padStart(6, "0")}`;
}

function number(value) {
  return value.toLocaleString("en");
}

function ownerName(index) {
  return index === null ? "" : DATA.owners[index].join(" / ");
}

function dayOf(time) {
  return time ? time.slice(0, 10) : "";
}

function time(text) {
  return text ? make("time", { datetime: text }, text.slice(0, 19).replace("T", " ")) : "";
}

const filters = document.getElementById("filters");

/** What is chosen now. */
function chosen() {
  const value = Object.fromEntries(new FormData(filters));
  const [kindOf, kind] = value.kind ? value.kind.split(/:(.*)/s) : ["", ""];
  return {
    owner: value.owner === "" ? null : Number(value.owner),
    from: value.from, to: value.to, kindOf, kind,
    outcome: value.outcome, text: value.text.trim().toLowerCase(), rows: Number(value.rows),
  };
}

/** Whether a row of a section is wanted, as far as the section knows what is asked. */
function wanted(section, row, want) {
  if (want.owner !== null && row.owner !== want.owner) return false;
  const day = section.day(row);
  if (want.from && !(day >= want.from)) return false;
  if (want.to && !(day && day <= want.to)) return false;
  if (want.kind && section.kinds === want.kindOf && section.kind && section.kind(row) !== want.kind) return false;
  if (want.outcome && section.outcome && section.outcome(row) !== want.outcome) return false;
  if (want.text && section.ids) {
    row.haystack ??= section.ids(row).join("\n").toLowerCase();
    if (!row.haystack.includes(want.text)) return false;
  }
  return true;
}

/** Say in words which filters narrow a section, and which don't touch it. */
function narrowedBy(section, want) {
  const by = [], not = [];
  const note = (isAsked, applies, name) => { if (isAsked) (applies ? by : not).push(name); };
  note(want.owner !== null, true, "owner");
  note(want.from || want.to, true, "days");
  note(want.kind, section.kinds === want.kindOf, "kind");
  note(want.outcome, section.hasOutcome, "outcome");
  note(want.text, section.ids, "text");
  return (by.length ? ` Filtered by ${by.join(", ")}.` : "")
    + (not.length ? ` Not touched by ${not.join(", ")}.` : "");
}

function fillChoices() {
  const add = (select, value, text) => select.append(make("option", { value }, text));
  const owners = DATA.owners.map((_, index) => index);
  owners.sort((a, b) => (ownerName(a) < ownerName(b) ? -1 : 1));
  for (const index of owners) add(filters.owner, index, ownerName(index));
  for (const [of, kinds] of kindsBySection()) {
    const group = make("optgroup", { label: `${of}s` });
    for (const kind of kinds) add(group, `${of}:${kind}`, kind);
    if (kinds.length) filters.kind.append(group);
  }
  for (const outcome of OUTCOMES) add(filters.outcome, outcome, outcome);
  const days = Object.values(SECTIONS).flatMap((section) => section.rows.map(section.day)).filter(Boolean);
  const [first, last] = days.reduce(
    ([low, high], day) => [day < low ? day : low, day > high ? day : high], ["9999-12-31", "0001-01-01"]);
  if (days.length) for (const input of [filters.from, filters.to]) Object.assign(input, { min: first, max: last });
}

function kindsBySection() {
  const sorted = (values) => [...new Set(values)].sort();
  return [
    ["reservation", sorted(DATA.days.rows.flatMap((row) => row.cells.map((cell) => cell[0])))],
    ["selection", sorted(DATA.selections.rows.map((row) => row.kind))],
    ["entry", sorted(DATA.erasures.rows.map((row) => row.kind))],
  ];
}

/** Show what is wanted in every section. */
function refresh(isFirst) {
  const want = chosen();
  const told = [];
  for (const section of Object.values(SECTIONS)) {
    section.found = section.narrow(want);
    section.page = 0;
    section.size = want.rows;
    showSection(section, want);
    told.push(`${section.found.length} ${section.name}`);
  }
  drawCharts();
  if (!isFirst) document.getElementById("told").textContent = `Showing ${told.join(", ")}.`;
}

let waiting = 0, rowsChange = false;
/** Show or only draw anew, once no further change comes; until that is done, the page is busy. */
function soon(what) {
  rowsChange ||= what.rows;
  document.querySelector("main").setAttribute("aria-busy", "true");
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const act = rowsChange ? refresh : drawCharts;
    waiting = 0;
    rowsChange = false;
    act();
  }, REDRAW_AFTER_MS);
}
