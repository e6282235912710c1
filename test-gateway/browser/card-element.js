// The card form of an API's script: a frame on the gateway's own origin, into which the card is
// typed. The script never sees the card. `pages.ts` serves this file and an API's script as one.

export const gatewayOrigin = new URL(document.currentScript.src).origin;
const frameHeight = 196;
const loadTimeoutMs = 15_000;

export const noForm = { error: { type: 'validation_error', message: 'No card form.' } };

/** The frame with the card form, and the events that the page receives from it. */
export class CardElement {
  #publishableKey;
  #options;
  #elementOptions;
  #forget;
  #listeners = new Map();
  /** The questions that the frame has not answered, by number. */
  #answers = new Map();
  #asked = 0;
  #frame = null;
  #loadTimer = 0;
  #ready = false;

  constructor(publishableKey, options, elementOptions, forget) {
    this.#publishableKey = publishableKey;
    this.#options = options;
    this.#elementOptions = elementOptions;
    this.#forget = forget;
  }

  mount(place) {
    const holder = typeof place === 'string' ? document.querySelector(place) : place;
    if (!holder) throw new Error('There is no such place for the card form.');
    if (this.#frame !== null) this.unmount();
    const frame = document.createElement('iframe');
    frame.title = 'Card details';
    frame.allow = 'payment';
    frame.src = `${gatewayOrigin}/v1/card-frame?${new URLSearchParams({ parent: location.origin })}`;
    // The height is reserved from the start, so that nothing on the page moves.
    Object.assign(frame.style, {
      display: 'block',
      width: '100%',
      height: `${frameHeight}px`,
      border: '0',
      colorScheme: schemeOf(this.#options().appearance),
    });
    this.#frame = frame;
    window.addEventListener('message', this.#hear);
    this.#loadTimer = setTimeout(() => {
      this.#emit('loaderror', {
        error: { type: 'api_error', message: 'The card form did not load.' },
      });
    }, loadTimeoutMs);
    holder.append(frame);
  }

  unmount() {
    clearTimeout(this.#loadTimer);
    window.removeEventListener('message', this.#hear);
    this.#frame?.remove();
    this.#frame = null;
    this.#ready = false;
    // The frame will no longer answer.
    for (const answer of this.#answers.values()) {
      answer({ error: { type: 'api_error', message: 'The card form was closed.' } });
    }
    this.#answers.clear();
  }

  destroy() {
    this.unmount();
    this.#listeners.clear();
    this.#forget();
  }

  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
    this.#listeners.get(name).add(listener);
    return this;
  }

  off(name, listener) {
    if (listener) this.#listeners.get(name)?.delete(listener);
    else this.#listeners.delete(name);
    return this;
  }

  update(changed) {
    this.#tell('update', { readOnly: changed.readOnly });
  }

  focus() {
    this.#frame?.focus();
    this.#tell('focus', {});
  }

  clear() {
    this.#tell('clear', {});
  }

  collapse() {}

  _tell(type, members) {
    if (members.appearance && this.#frame) {
      this.#frame.style.colorScheme = schemeOf(members.appearance);
    }
    this.#tell(type, members);
  }

  _ask(type, members = {}) {
    if (this.#frame === null || !this.#ready) {
      const error = { type: 'api_error', message: 'The card form is not ready yet.' };
      return Promise.resolve({ error });
    }
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.#tell(type, { ...members, id });
    });
  }

  #emit(name, event) {
    for (const listener of this.#listeners.get(name) ?? []) {
      listener({ elementType: 'payment', ...event });
    }
  }

  #tell(type, members) {
    this.#frame?.contentWindow?.postMessage({ type, ...members }, gatewayOrigin);
  }

  #hear = (event) => {
    const frame = this.#frame;
    if (frame === null || event.source !== frame.contentWindow) return;
    if (event.origin !== gatewayOrigin) return;
    const message = event.data ?? {};
    switch (message.type) {
      case 'hello': {
        const { appearance } = this.#options();
        const { readOnly } = this.#elementOptions;
        this.#tell('init', { key: this.#publishableKey, appearance, readOnly });
        break;
      }
      case 'ready':
        if (this.#ready) break;
        this.#ready = true;
        clearTimeout(this.#loadTimer);
        this.#emit('ready', {});
        break;
      case 'height':
        if (message.height > 0 && message.height < 2000) {
          frame.style.height = `${Math.ceil(message.height)}px`;
        }
        break;
      case 'change':
        this.#emit('change', {
          complete: message.complete === true,
          empty: message.empty === true,
          collapsed: false,
          value: { type: 'card' },
        });
        break;
      case 'focus':
      case 'blur':
        this.#emit(message.type, {});
        break;
      case 'enter':
        frame.closest('form')?.requestSubmit();
        break;
      case 'answer':
        this.#answers.get(message.id)?.(message.answer);
        this.#answers.delete(message.id);
        break;
    }
  };
}

// A browser paints an opaque background if the frame's colour scheme differs from its element's.
function schemeOf(appearance) {
  if (appearance?.theme === 'night') return 'dark';
  if (appearance?.theme) return 'light';
  return 'light dark';
}
