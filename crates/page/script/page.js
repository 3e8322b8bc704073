"use strict";
// The script of the page: search, keys, relative times, and news without a reload. Everything can be read without it.
const root = document.documentElement.dataset["root"] ?? "";
/** The longest wait before a lost stream of news is opened again, in milliseconds. */
const PATIENCE = 30_000;
/** Attributes that belong to the reader and not to the view. */
const KEPT = new Set(["open", "hidden"]);
const search = () => document.querySelector("#search");
const findable = () => [...document.querySelectorAll("[data-find]")];
// Search: the words of the field stand in the address, so that a link leads to the same list.
function filter() {
    const field = search();
    if (field === null)
        return;
    const words = field.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    let found = 0;
    for (const element of findable()) {
        const text = (element.textContent ?? "").toLowerCase();
        const fits = words.every((word) => text.includes(word));
        element.classList.toggle("gone", !fits);
        if (fits)
            found += 1;
    }
    for (const group of document.querySelectorAll(".group")) {
        group.hidden = group.querySelector("[data-find]:not(.gone)") === null;
    }
    const said = document.getElementById("found");
    if (said !== null)
        said.textContent = words.length === 0 ? "" : `${found} of ${findable().length}`;
}
function remember() {
    const address = new URL(location.href);
    const words = search()?.value.trim() ?? "";
    if (words === "")
        address.searchParams.delete("q");
    else
        address.searchParams.set("q", words);
    history.replaceState(null, "", address);
}
function prepare() {
    const tools = document.getElementById("tools");
    if (tools !== null)
        tools.hidden = false;
    const field = search();
    if (field === null || field.dataset["ready"] === "yes")
        return;
    field.dataset["ready"] = "yes";
    field.value = new URL(location.href).searchParams.get("q") ?? "";
    field.addEventListener("input", () => {
        filter();
        remember();
    });
}
// Times: how long ago, or how soon.
function age(seconds) {
    const past = Math.abs(seconds);
    const steps = [[90, 1, "s"], [5400, 60, "min"], [129_600, 3600, "h"], [Infinity, 86_400, "d"]];
    const [, unit, name] = steps.find(([limit]) => past < limit) ?? [0, 86_400, "d"];
    const text = `${Math.round(past / unit)} ${name}`;
    return seconds < 0 ? `in ${text}` : `${text} ago`;
}
function times() {
    for (const time of document.querySelectorAll("time")) {
        const at = Date.parse(time.dateTime);
        if (Number.isNaN(at))
            continue;
        time.title ||= time.textContent ?? "";
        time.textContent = age((Date.now() - at) / 1000);
    }
}
// News: the stream says that something has changed, and the view is fetched again.
function matches(old, fresh) {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName)
        return false;
    if (!(old instanceof Element) || !(fresh instanceof Element))
        return true;
    return key(old) === key(fresh);
}
function key(element) {
    return element.id || element.getAttribute("data-key") || "";
}
/** Makes an element like another one, and leaves what is alike in its place, with its focus and its scroll. */
function morph(old, fresh) {
    for (const { name } of [...old.attributes]) {
        if (!fresh.hasAttribute(name) && !KEPT.has(name))
            old.removeAttribute(name);
    }
    for (const { name, value } of [...fresh.attributes]) {
        if (!KEPT.has(name) && old.getAttribute(name) !== value)
            old.setAttribute(name, value);
    }
    if (old instanceof HTMLInputElement)
        return;
    const keyed = new Map();
    for (const child of old.children)
        if (key(child) !== "")
            keyed.set(key(child), child);
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
        const known = next instanceof Element && key(next) !== "" ? keyed.get(key(next)) : undefined;
        const same = known?.nodeName === next.nodeName ? known : at !== null && matches(at, next) ? at : null;
        if (same === null) {
            old.insertBefore(next, at);
            continue;
        }
        if (same === at)
            at = at.nextSibling;
        else
            old.insertBefore(same, at);
        if (same instanceof Element)
            morph(same, next);
        else if (same.nodeValue !== next.nodeValue)
            same.nodeValue = next.nodeValue;
    }
    while (at !== null) {
        const rest = at.nextSibling;
        at.remove();
        at = rest;
    }
}
let tag = null;
let busy = false;
let again = false;
async function refresh() {
    if (busy) {
        again = true;
        return;
    }
    busy = true;
    try {
        const answer = await fetch(location.href, { headers: tag === null ? {} : { "If-None-Match": tag }, cache: "no-store" });
        if (answer.status !== 304) {
            tag = answer.headers.get("ETag");
            const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
            for (const id of ["whereabouts", "view"]) {
                const [old, next] = [document.getElementById(id), fresh.getElementById(id)];
                if (old !== null && next !== null)
                    morph(old, next);
            }
            show();
        }
        tell("on", "live");
    }
    catch {
        tell("lost", "no answer");
    }
    busy = false;
    if (again) {
        again = false;
        void refresh();
    }
}
function tell(state, word) {
    const live = document.getElementById("live");
    if (live === null)
        return;
    live.hidden = false;
    live.className = `live ${state}`;
    live.textContent = word;
}
function listen() {
    const stream = new EventSource(`${root}live`);
    let waiting = false;
    stream.addEventListener("changed", () => {
        // A page that nobody looks at asks for nothing until it is looked at.
        if (document.hidden)
            waiting = true;
        else
            void refresh();
    });
    document.addEventListener("visibilitychange", () => {
        if (document.hidden || !waiting)
            return;
        waiting = false;
        void refresh();
    });
    stream.addEventListener("error", () => {
        tell("lost", "not live");
        if (stream.readyState !== EventSource.CLOSED)
            return;
        setTimeout(listen, PATIENCE * (0.5 + Math.random() / 2));
    });
    window.addEventListener("pagehide", () => stream.close());
}
// Keys.
function step(by) {
    const links = findable()
        .filter((element) => !element.classList.contains("gone"))
        .map((element) => (element.matches("a") ? element : element.querySelector("a")))
        .filter((link) => link !== null);
    const at = links.findIndex((link) => link === document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
}
function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey)
        return;
    const field = search();
    const keys = document.getElementById("keys");
    if (event.key === "Escape") {
        if (keys !== null)
            keys.hidden = true;
        if (field !== null && document.activeElement === field) {
            field.value = "";
            field.blur();
            filter();
            remember();
        }
        return;
    }
    if (document.activeElement instanceof HTMLInputElement) {
        if (event.key === "Enter")
            step(1);
        return;
    }
    const to = { m: "./", g: "graph", o: "operator" };
    const groups = ["bad", "busy", "good", "off"];
    if (event.key === "/" && field !== null)
        field.focus();
    else if (event.key === "j")
        step(1);
    else if (event.key === "k")
        step(-1);
    else if (event.key === "?" && keys !== null)
        keys.hidden = !keys.hidden;
    else if (event.key in to)
        location.href = root + (to[event.key] ?? "");
    else if (/^[1-4]$/.test(event.key))
        document.getElementById(groups[Number(event.key) - 1] ?? "")?.scrollIntoView();
    else
        return;
    event.preventDefault();
}
/** Scrolls the graph to the chosen module, and leaves the rest of the page where it is. */
function centre() {
    const canvas = document.querySelector(".canvas");
    const chosen = document.querySelector(".node.chosen rect");
    if (canvas === null || chosen === null)
        return;
    const [box, frame] = [chosen.getBoundingClientRect(), canvas.getBoundingClientRect()];
    canvas.scrollTo(box.left - frame.left - frame.width / 2, box.top - frame.top - frame.height / 2);
}
function show() {
    prepare();
    filter();
    times();
}
show();
centre();
document.addEventListener("keydown", pressed);
setInterval(times, 10_000);
// A view of records is read from the cluster once, and not again with each change of a module.
if (document.documentElement.dataset["still"] === undefined)
    listen();
