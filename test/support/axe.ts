import fs from 'node:fs';
import { createRequire } from 'node:module';
import axe from 'axe-core';
import type { Frame, Page } from 'playwright-core';

// The minified file: it is half as long as the exported source, and a browser has to parse all of
// it.
const source = fs.readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

type FrameContext = ReturnType<typeof axe.utils.getFrameContexts>[number];
type FrameResult = Awaited<ReturnType<typeof axe.runPartial>>;
type Inspected = [children: FrameContext[], result: string];

/** The rule that takes as long as all others together. */
export const withoutContrast = { rules: { 'color-contrast': { enabled: false } } };

/**
 * Returns the problems that axe finds in a page and its frames. Loading axe takes much longer than
 * running it, so each frame loads it once, and this function merges the frames' results instead of
 * opening another page for that.
 */
export async function axeViolations(page: Page, options = {}): Promise<string[]> {
  const texts = await inspectPage(page, JSON.stringify(options));
  const results: FrameResult[] = texts.map((text) => JSON.parse(text));
  const { violations } = await axe.finishRun(results, {});
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

class FrameGone extends Error {}

/** A page may replace a frame while axe inspects it. Then axe runs again. */
async function inspectPage(page: Page, options: string, rounds = 5): Promise<string[]> {
  try {
    return await inspect(page.mainFrame(), options);
  } catch (error) {
    if (!(error instanceof FrameGone) || rounds === 1) throw error;
    return await inspectPage(page, options, rounds - 1);
  }
}

/**
 * The results of a frame and its frames, as JSON. Playwright takes as long to copy an object of this
 * size as axe takes to make it, while a string is cheap. On a loaded machine each question to the
 * browser waits its turn, so there are few.
 */
async function inspect(frame: Frame, options: string, context: object = {}): Promise<string[]> {
  const of = JSON.stringify({ include: [], exclude: [], ...context });
  const run = `(async () => [
    axe.utils.getFrameContexts(${of}),
    JSON.stringify(await axe.runPartial(${of}, ${options})),
  ])()`;
  const [children, result] =
    (await frame.evaluate<Inspected | null>(`'axe' in window ? ${run} : null`)) ??
    (await frame.evaluate<Inspected>(`${source};${run}`));
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

/** Most pages show the card frame, and mostly it looks the same, so it is inspected once. */
async function inspectOnce(frame: Frame, options: string, context: object): Promise<string[]> {
  const look = await frame.evaluate<string | null>(lookScript);
  if (look === null) return await inspect(frame, options, context);
  const key = `${options} ${JSON.stringify(context)} ${look}`;
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
