import fs from 'node:fs';
import { createRequire } from 'node:module';
import axe from 'axe-core';
import type { Frame, Page } from 'playwright-core';

// The minified file is half as long as the exported source, and a browser has to parse all of it.
const source = fs.readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

type FrameContext = ReturnType<typeof axe.utils.getFrameContexts>[number];
type FrameResult = Awaited<ReturnType<typeof axe.runPartial>>;
type Inspected = [children: FrameContext[], result: string, measured: number[]];

/**
 * Measuring the contrast of text takes axe as long as all other rules together, and the contrast is
 * the same wherever the colours, the font and the backgrounds are the same. So axe measures each
 * combination once in a process. This script marks one text of each combination that is not known.
 */
const markScript = `(known) => {
  const marked = new Set();
  const backgrounds = new Map();
  const backgroundOf = (element) => {
    if (element === null) return '';
    if (!backgrounds.has(element)) {
      const style = getComputedStyle(element);
      const own = [style.backgroundColor, style.backgroundImage, style.opacity].join();
      backgrounds.set(element, own + ' ' + backgroundOf(element.parentElement));
    }
    return backgrounds.get(element);
  };
  for (const element of document.querySelectorAll('body, body *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText && !('value' in element)) continue;
    // Axe does not measure a hidden text, which must therefore not stand for a visible one.
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const text = [color, fontSize, fontWeight, textShadow, backgroundOf(element)].join();
    let hash = 7;
    for (let at = 0; at < text.length; at += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
    if (known.includes(hash) || marked.has(hash)) continue;
    marked.add(hash);
    element.setAttribute('data-measured', hash);
  }
}`;

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

/**
 * Returns the combinations that axe measured. Axe skips disabled elements and cannot judge covered
 * ones, so the combination of such an element does not count as known.
 */
const measuredScript = `({ results }) => results
  .flatMap(({ id, nodes }) => (id === 'color-contrast' ? nodes : []))
  .filter(({ any: [check] }) => typeof check?.result === 'boolean')
  .map(({ node }) => Number(/data-measured="(-?\\d+)"/.exec(node.source)?.[1] ?? NaN))`;

const load = `${source};${configure};null`;

const unmarkScript = `for (const element of document.querySelectorAll('[data-measured]'))
  element.removeAttribute('data-measured')`;

const measured = new Set<number>();

/**
 * Returns the problems that axe finds in a page and its frames. Loading axe takes much longer than
 * running it, so each frame loads it once, and this function merges the frames' results instead of
 * opening another page for that.
 */
export async function axeViolations(page: Page): Promise<string[]> {
  const texts = await inspectPage(page);
  const results: FrameResult[] = texts.map((text) => JSON.parse(text));
  const { violations } = await axe.finishRun(results, {});
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

class FrameGone extends Error {}

/** A page may replace a frame while axe inspects it. Then axe runs again. */
async function inspectPage(page: Page, rounds = 5): Promise<string[]> {
  try {
    return await inspect(page.mainFrame());
  } catch (error) {
    if (!(error instanceof FrameGone) || rounds === 1) throw error;
    return await inspectPage(page, rounds - 1);
  }
}

/**
 * The results for a frame and its frames, as JSON. Playwright takes as long to copy an object of
 * this size as axe takes to make it, while a string is cheap. On a loaded machine each call to the
 * browser waits its turn, so this makes few calls.
 */
async function inspect(frame: Frame, context: object = {}): Promise<string[]> {
  const of = JSON.stringify({ include: [], exclude: [], ...context });
  const run = `(async () => {
    (${markScript})(${JSON.stringify([...measured])});
    const result = await axe.runPartial(${of}, {});
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
  for (const hash of nowMeasured) measured.add(hash);
  const results = await Promise.all(
    children.map(async ({ frameSelector, frameContext }) => {
      const selector = JSON.stringify(frameSelector);
      const element = await frame.evaluateHandle(`axe.utils.shadowSelect(${selector})`);
      const child = await element.asElement()?.contentFrame();
      if (!child) throw new FrameGone(`axe cannot look into ${selector}`);
      return await inspectOnce(child, frameContext);
    }),
  );
  return [result, ...results.flat()];
}

const inspected = new Map<string, string[]>();

/** Most pages show the card frame. It usually looks the same, so each look is inspected once. */
async function inspectOnce(frame: Frame, context: object): Promise<string[]> {
  const look = await frame.evaluate<string | null>(lookScript);
  if (look === null) return await inspect(frame, context);
  const key = `${JSON.stringify(context)} ${look}`;
  const results = inspected.get(key) ?? (await inspect(frame, context));
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
