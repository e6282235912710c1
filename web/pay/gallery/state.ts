import type { PayPage } from '#purchases/shoppers/pay-page.ts';

/** A page, no answer at all, or a broken connection. */
export type Answer = PayPage | 'never' | 'broken';

export type GalleryState = {
  page: PayPage | null;
  /** The last thing that the shopper does to bring the page into this state. */
  step?: 'pay' | 'cancel' | 'open-test-cards' | 'show-order';
  /** Buttons and radios to click, by their names, before `step`. */
  clicks?: string[];
  /** A field to fill in, by its label, and the button to press afterwards. */
  fills?: { label: string; text: string; press: string };
  /** Whether the card is typed after the clicks. */
  typesCard?: boolean;
  /** The button to press once the card is typed. */
  presses?: string;
  /** Whether a one-time link opens the page, and how the server answers it. */
  link?: 'opens' | 'ended';
  /** Whether the shopper has sent too many messages. */
  report?: 'limited';
  /** Text that appears once the state is reached, if reaching it takes a moment. */
  sees?: string;
  pay?: Answer;
  cancel?: Answer;
  /** The answer to later state requests; the page itself if absent. */
  state?: Answer;
};

export type GalleryStates = Record<string, GalleryState>;
