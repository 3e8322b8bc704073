// Looks at the page with a real Chromium: `browser.mjs check BASE` finds faults, `browser.mjs pictures BASE FOLDER` keeps pictures.
// It is run in a folder with the packages of package.json; BASE is the address of `show` (examples/show.rs).
import { createRequire } from "node:module";
import { join } from "node:path";
import { readFileSync } from "node:fs";

const require = createRequire(join(process.cwd(), "here.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [mode, base, folder] = process.argv.slice(2);
const WIDE = { width: 1440, height: 900 };
const NARROW = { width: 390, height: 844 };
const FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const faults = [];
const fault = (where, text) => faults.push(`${where}: ${text}`);

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", chromiumSandbox: false, args: FLAGS });

/** A page whose errors, dialogs and requests to other places are faults. The bypass is for axe alone, which brings a script. */
async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  const page = await context.newPage();
  if (options.now) await page.clock.setFixedTime(options.now);
  page.on("pageerror", (error) => fault(path, error.message));
  page.on("dialog", (dialog) => { fault(path, `dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(base) && !request.url().startsWith("data:")) fault(path, `asks ${request.url()}`); });
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (404|503)/.test(message.text())) fault(path, message.text());
  });
  await page.goto(base + path, { waitUntil: "load" });
  return page;
}

async function accessible(path, options) {
  const page = await open(path, { bypassCSP: true, ...options });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
  for (const { id, nodes } of violations) fault(path, `axe ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (overflow > 0) fault(path, `is ${overflow} pixels too wide at ${options.viewport?.width ?? WIDE.width}`);
  await page.context().close();
}

const expect = (where, holds, text) => { if (!holds) fault(where, text); };

async function search() {
  const page = await open("/200/");
  await page.keyboard.press("/");
  await page.keyboard.type("redis lab");
  const names = await page.locator("tr[data-find]:not(.gone) th a").allTextContents();
  expect("search", names.length > 0 && names.every((name) => /redis-lab/.test(name)), names.join(" "));
  expect("search", page.url().endsWith("/200/?q=redis+lab"), page.url());
  await page.reload();
  // The first news renews the view.
  await page.locator("#live.on").waitFor();
  expect("search", (await page.locator("tr[data-find]:not(.gone)").count()) === names.length, "a link does not lead to the same list");
  await page.keyboard.press("j");
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  expect("keys", (await focused()) === names[0], await focused());
  await page.keyboard.press("Enter");
  await page.waitForURL("**/modules/**");
  expect("keys", (await page.locator("h1").textContent()) === names[0], "Enter does not open the module");
  await page.keyboard.press("o");
  await page.waitForURL("**/200/operator");
  await page.keyboard.press("?");
  expect("keys", await page.locator("#keys").isVisible(), "no help for keys");
  await page.context().close();
}

/** The script fetches a view again, and the reader keeps the place, the words and the focus. */
async function refreshed() {
  const page = await open("/200/");
  await page.locator("#live.on").waitFor();
  await page.locator("#search").fill("ready");
  await page.locator("summary").first().click();
  await page.evaluate(() => { document.querySelectorAll("tr[data-find]:not(.gone) a")[5].focus(); scrollTo(0, 500); });
  const before = await page.evaluate(() => [scrollY, document.activeElement?.textContent, document.querySelectorAll(".gone").length].join());
  await page.evaluate(() => { document.querySelector("#view tr td").textContent = "changed"; });
  await page.evaluate(async () => { tag = null; await refresh(); });
  const after = await page.evaluate(() => [scrollY, document.activeElement?.textContent, document.querySelectorAll(".gone").length].join());
  expect("refresh", before === after, `${before} became ${after}`);
  expect("refresh", (await page.locator("text=changed").count()) === 0, "an old text stays");
  expect("refresh", (await page.locator("details:not([open])").count()) === 1, "a closed group opens");
  await page.context().close();
}

async function without_script() {
  for (const path of ["/200/", "/200/modules/redis", "/200/graph/redis", "/200/operator"]) {
    const page = await open(path, { javaScriptEnabled: false });
    const text = await page.locator("main").innerText();
    expect(path, text.includes("redis") || text.includes("Queues"), "nothing can be read without script");
    await page.context().close();
  }
}

async function check() {
  const module = "modules/cert-manager";
  const views = ["", "graph", "operator", module, "graph/cert-manager", `${module}/events`, `${module}/revisions/8/9`];
  const sizes = { 0: views.slice(0, 3), 6: views, 200: views, 1000: views, hostile: views.slice(0, 3), standby: [""] };
  for (const [size, shown] of Object.entries(sizes)) {
    for (const view of shown) {
      await accessible(`/${size}/${view}`, {});
      // The looks differ in the style alone, which is the same at each size.
      if (size !== "6") continue;
      await accessible(`/${size}/${view}`, { colorScheme: "dark" });
      await accessible(`/${size}/${view}`, { viewport: NARROW });
    }
  }
  await accessible("/200/", { viewport: NARROW });
  await accessible(`/hostile/modules/${encodeURIComponent("<script>alert(1)</script>")}`, {});
  await search();
  await refreshed();
  await without_script();
}

/** The pictures of the documents: few, and small, at the time of the samples. */
async function pictures() {
  const small = { viewport: { width: 1180, height: 720 }, now: new Date(1_795_982_400_000) };
  const whole = { ...small, fullPage: true };
  const shown = {
    "page-overview-light": ["/200/", small],
    "page-overview-dark": ["/200/", { ...small, colorScheme: "dark" }],
    "page-module-light": ["/200/modules/node-exporter", whole],
    "page-events-light": ["/200/modules/node-exporter/events", small],
    "page-revisions-light": ["/200/modules/node-exporter/revisions/8/9", small],
    "page-graph-dark": ["/200/graph/loki", { ...small, colorScheme: "dark" }],
    "page-graph-light": ["/200/graph", small],
    "page-operator-light": ["/200/operator", whole],
    "page-overview-narrow": ["/200/", { ...small, viewport: NARROW }],
    "page-overview-none": ["/0/", small],
    "page-overview-few": ["/6/", small],
    "page-overview-many": ["/1000/", small],
    "page-standby-light": ["/standby/", small],
  };
  for (const [name, [path, options]] of Object.entries(shown)) {
    const page = await open(path, options);
    if ((await page.locator("html[data-still]").count()) === 0) await page.locator("#live.on").waitFor();
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: options.fullPage ?? false });
    await page.context().close();
  }
}

await (mode === "pictures" ? pictures() : check());
await browser.close();
for (const text of faults) console.log(text);
console.log(`${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
