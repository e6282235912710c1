import fs from 'node:fs';
import { createRequire } from 'node:module';
import axe from 'axe-core';
import type { Frame, Page } from 'playwright-core';
import { type Survey, surveyScript } from './axe-survey.ts';
import { isLong } from './service.ts';

// The minified file is half as long as the exported source, and a browser has to parse all of it.
const source = fs.readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

type FrameContext = ReturnType<typeof axe.utils.getFrameContexts>[number];
type FrameResult = Awaited<ReturnType<typeof axe.runPartial>>;
type Inspected = [children: FrameContext[], result: string, measured: number[]];

/**
 * By default axe searches for the shortest selector of every element that it looks at and writes an
 * XPath, which takes longer than its rules. The element's path from the root is enough.
 */
const configure = `
axe.configure({ rules: [{ id: 'color-contrast', selector: '[data-measured]' }] });
axe.utils.nodeSerializer.update({
  toSpec({ source, ancestry, nodeIndexes, fromFrame }) {
    return { source, ancestry, selector: ancestry, xpath: ancestry, nodeIndexes, fromFrame };
  },
});`;

/** The texts whose contrast axe measured. It does not judge covered ones, for example. */
const measuredScript = `({ results }) => results
  .flatMap(({ id, nodes }) => (id === 'color-contrast' ? nodes : []))
  .filter(({ any: [check] }) => typeof check?.result === 'boolean')
  .map(({ node }) => Number(/data-measured="(-?\\d+)"/.exec(node.source)?.[1] ?? NaN))`;

const load = `${source};${configure};null`;

const unmarkScript = `for (const element of document.querySelectorAll('[data-measured]'))
  element.removeAttribute('data-measured')`;

/** What axe has looked at in this process: kinds of elements, and texts of which it measured. */
const seen = new Set<number>();
const measured = new Set<number>();
/** How often axe could not judge a text in an element of a kind. */
const doubts = new Map<number, number>();

type Options = { runOnly?: string[] };

/**
 * Returns the problems that axe finds in a page and its frames. Axe takes longer than most pages do
 * to load, so outside of `test:long` it does not run on a page that shows no kind of element and no
 * colours of a text that it has not seen in this process. Loading axe takes much longer than
 * running it, so each frame loads it once, and this function merges the frames' results instead of
 * opening another page for that.
 */
export async function axeViolations(page: Page): Promise<string[]> {
  const found = await surveyPage(page);
  const surveys = found.filter((survey) => survey !== null);
  const kinds = surveys.flatMap((survey) => survey.kinds).filter((kind) => !seen.has(kind));
  const texts = surveys.flatMap((survey) => survey.texts);
  const isNew = isLong || kinds.length > 0 || surveys.length < found.length;
  if (!isNew && texts.length === 0) return [];
  const options: Options = isNew ? {} : { runOnly: ['color-contrast'] };
  const results: FrameResult[] = (await inspectPage(page, options)).map((text) => JSON.parse(text));
  for (const kind of kinds) seen.add(kind);
  for (const [text, kind] of texts) {
    if (!measured.has(text)) doubts.set(kind, (doubts.get(kind) ?? 0) + 1);
  }
  const { violations } = await axe.finishRun(results, options);
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

function survey(isMarking: boolean): string {
  const doubtful = [...doubts].filter(([, times]) => times >= 2).map(([kind]) => kind);
  return `(${surveyScript})(${JSON.stringify([[...measured], doubtful, isMarking])})`;
}

/** What a page and its frames show; null for a frame that the page has just replaced. */
async function surveyPage(page: Page): Promise<(Survey | null)[]> {
  const main = await page.mainFrame().evaluate<Survey>(survey(false));
  if (main.frames === 0) return [main];
  const frames = page.mainFrame().childFrames();
  const others = frames.map((frame) => frame.evaluate<Survey>(survey(false)).catch(() => null));
  return [main, ...(await Promise.all(others))];
}

class FrameGone extends Error {}

/** A page may replace a frame while axe inspects it. Then axe runs again. */
async function inspectPage(page: Page, options: Options, rounds = 5): Promise<string[]> {
  try {
    return await inspect(page.mainFrame(), options);
  } catch (error) {
    if (!(error instanceof FrameGone) || rounds === 1) throw error;
    return await inspectPage(page, options, rounds - 1);
  }
}

/**
 * The results for a frame and its frames, as JSON. Playwright takes as long to copy an object of
 * this size as axe takes to make it, while a string is cheap. On a loaded machine each call to the
 * browser waits its turn, so this makes few calls.
 */
async function inspect(frame: Frame, options: Options, context: object = {}): Promise<string[]> {
  const of = JSON.stringify({ include: [], exclude: [], ...context });
  const run = `(async () => {
    ${survey(true)};
    const result = await axe.runPartial(${of}, ${JSON.stringify(options)});
    ${unmarkScript};
    const measured = (${measuredScript})(result);
    return [axe.utils.getFrameContexts(${of}), JSON.stringify(result), measured];
  })()`;
  let inspected = await frame.evaluate<Inspected | null>(`'axe' in window ? ${run} : null`);
  while (inspected === null) {
    // The browser compiles this long text once, because it is always the same.
    await frame.evaluate(load);
    inspected = await frame.evaluate<Inspected | null>(`'axe' in window ? ${run} : null`);
  }
  const [children, result, nowMeasured] = inspected;
  for (const text of nowMeasured) measured.add(text);
  const results = await Promise.all(
    children.map(async ({ frameSelector, frameContext }) => {
      const selector = JSON.stringify(frameSelector);
      const element = await frame.evaluateHandle(`axe.utils.shadowSelect(${selector})`);
      const child = await element.asElement()?.contentFrame();
      if (!child) throw new FrameGone(`axe cannot look into ${selector}`);
      return await inspectOnce(child, options, frameContext);
    }),
  );
  return [result, ...results.flat()];
}

const inspected = new Map<string, string[]>();

/** Most pages show the card frame. It usually looks the same, so each look is inspected once. */
async function inspectOnce(frame: Frame, options: Options, context: object): Promise<string[]> {
  const look = await frame.evaluate<string | null>(lookScript);
  if (look === null) return await inspect(frame, options, context);
  const key = `${JSON.stringify([options, context])} ${look}`;
  const results = inspected.get(key) ?? (await inspect(frame, options, context));
  inspected.set(key, results);
  return results;
}

/** Everything that decides what axe finds in a frame; null if the frame contains other frames. */
const lookScript = `document.querySelector('iframe, frame') ? null : JSON.stringify([
  location.origin + location.pathname,
  document.documentElement.outerHTML,
  [...document.querySelectorAll('input, select, textarea')].map((one) => [one.value, one.checked]),
  [...document.querySelectorAll('*')].indexOf(document.activeElement),
  [innerWidth, innerHeight],
  ['prefers-color-scheme: dark', 'prefers-contrast: more', 'forced-colors: active',
    'prefers-reduced-motion: reduce'].map((query) => matchMedia('(' + query + ')').matches),
])`;
