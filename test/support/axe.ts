import fs from 'node:fs';
import { createRequire } from 'node:module';
import axe from 'axe-core';
import type { Frame, Page } from 'playwright-core';

// The minified file: half as long as the exported source, and a browser has to read all of it.
const source = fs.readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

type FrameContext = ReturnType<typeof axe.utils.getFrameContexts>[number];
type FrameResult = Awaited<ReturnType<typeof axe.runPartial>>;

/**
 * What axe finds wrong with a page and its frames. Loading axe takes much longer than running it, so
 * each frame loads it once, and this function merges the frames' results instead of opening
 * another page for that.
 */
export async function axeFindings(page: Page): Promise<string[]> {
  const { violations } = await axe.finishRun(await inspect(page.mainFrame()), {});
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

async function inspect(frame: Frame, context: object = {}): Promise<FrameResult[]> {
  if (!(await frame.evaluate('"axe" in window'))) await frame.evaluate(source);
  const of = JSON.stringify({ include: [], exclude: [], ...context });
  const children = await frame.evaluate<FrameContext[]>(`axe.utils.getFrameContexts(${of})`);
  return await Promise.all([
    frame.evaluate<FrameResult>(`axe.runPartial(${of}, {})`),
    ...children.map(async ({ frameSelector, frameContext }) => {
      const selector = JSON.stringify(frameSelector);
      const element = await frame.evaluateHandle(`axe.utils.shadowSelect(${selector})`);
      const child = await element.asElement()?.contentFrame();
      if (!child) throw new Error(`axe cannot look into ${selector}`);
      return await inspect(child, frameContext);
    }),
  ]).then((results) => results.flat());
}
