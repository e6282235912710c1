import type { PayPage } from '#purchases/shoppers/pay-page.ts';

/** A page, no answer at all, or a broken connection. */
export type Answer = PayPage | 'never' | 'broken';

export type GalleryState = {
  page: PayPage | null;
  /** The step that shows the state on the page. */
  step?: 'pay' | 'cancel' | 'open-test-cards' | 'show-order';
  /** Buttons and radios to click, by their names, before the last step. */
  clicks?: string[];
  /** A field to fill, by its label, and the button to press then. */
  fills?: { label: string; text: string; press: string };
  /** The card is typed after the clicks. */
  typesCard?: boolean;
  /** The button to press once the card is typed. */
  presses?: string;
  /** The page is opened by a one-time link, and this is the server's answer to it. */
  link?: 'opens' | 'ended';
  /** Text that appears once the state is reached, if that takes a moment. */
  sees?: string;
  pay?: Answer;
  cancel?: Answer;
  /** The answer to later state requests; the page itself if absent. */
  state?: Answer;
};

export type GalleryStates = Record<string, GalleryState>;
