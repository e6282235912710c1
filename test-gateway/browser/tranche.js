// The test gateway's script for payment pages: the few calls of Stripe.js that a page needs to take
// a card. The card is typed into a frame on the gateway's own origin; this script never sees it.
(() => {
  const gatewayOrigin = new URL(document.currentScript.src).origin;
  const frameHeight = 196;
  const loadTimeoutMs = 15_000;

  function Stripe(publishableKey) {
    if (typeof publishableKey !== 'string' || !publishableKey.startsWith('pk_')) {
      throw new Error('Stripe() needs a publishable key (pk_…).');
    }
    return {
      elements: (options) => createElements(publishableKey, options ?? {}),

      async createConfirmationToken({ elements }) {
        const card = elements.getElement('payment');
        if (card === null) return { error: { type: 'validation_error', message: 'No card form.' } };
        return await card._ask('createToken');
      },
    };
  }

  function createElements(publishableKey, given) {
    let options = given;
    let element = null;
    return {
      create(type, elementOptions) {
        if (type !== 'payment' && type !== 'card') throw new Error(`There is no element ${type}.`);
        if (element !== null) throw new Error('There is one card form already.');
        element = createCardElement(
          publishableKey,
          () => options,
          elementOptions ?? {},
          () => {
            element = null;
          },
        );
        return element;
      },
      getElement: (type) => (type === 'payment' || type === 'card' ? element : null),
      update(changed) {
        options = { ...options, ...changed };
        if (changed.appearance) element?._tell('update', { appearance: changed.appearance });
      },
      async submit() {
        if (element === null) {
          return { error: { type: 'validation_error', message: 'No card form.' } };
        }
        const { error } = await element._ask('submit');
        return error ? { error } : { selectedPaymentMethod: 'card' };
      },
      async fetchUpdates() {
        return {};
      },
    };
  }

  function createCardElement(publishableKey, options, elementOptions, forget) {
    const listeners = new Map();
    const answers = new Map();
    let frame = null;
    let asked = 0;
    let loadTimer = 0;
    let ready = false;

    function emit(name, event) {
      for (const listener of listeners.get(name) ?? []) {
        listener({ elementType: 'payment', ...event });
      }
    }

    function tell(type, members) {
      frame?.contentWindow?.postMessage({ type, ...members }, gatewayOrigin);
    }

    function hear(event) {
      if (frame === null || event.source !== frame.contentWindow) return;
      if (event.origin !== gatewayOrigin) return;
      const message = event.data ?? {};
      switch (message.type) {
        case 'hello': {
          const { appearance } = options();
          tell('init', { key: publishableKey, appearance, readOnly: elementOptions.readOnly });
          break;
        }
        case 'ready':
          if (ready) break;
          ready = true;
          clearTimeout(loadTimer);
          emit('ready', {});
          break;
        case 'height':
          if (message.height > 0 && message.height < 2000) {
            frame.style.height = `${Math.ceil(message.height)}px`;
          }
          break;
        case 'change':
          emit('change', {
            complete: message.complete === true,
            empty: message.empty === true,
            collapsed: false,
            value: { type: 'card' },
          });
          break;
        case 'focus':
        case 'blur':
          emit(message.type, {});
          break;
        case 'enter':
          frame.closest('form')?.requestSubmit();
          break;
        case 'answer':
          answers.get(message.id)?.(message.answer);
          answers.delete(message.id);
          break;
      }
    }

    function unmount() {
      clearTimeout(loadTimer);
      window.removeEventListener('message', hear);
      frame?.remove();
      frame = null;
      ready = false;
      // The frame will not answer any more.
      for (const answer of answers.values()) {
        answer({ error: { type: 'api_error', message: 'The card form was closed.' } });
      }
      answers.clear();
    }

    return {
      mount(place) {
        const holder = typeof place === 'string' ? document.querySelector(place) : place;
        if (!holder) throw new Error('There is no such place for the card form.');
        if (frame !== null) unmount();
        frame = document.createElement('iframe');
        frame.title = 'Card details';
        frame.allow = 'payment';
        frame.src = `${gatewayOrigin}/v1/card-frame?${new URLSearchParams({ parent: location.origin })}`;
        // The height is reserved from the start, so that nothing on the page moves.
        Object.assign(frame.style, {
          display: 'block',
          width: '100%',
          height: `${frameHeight}px`,
          border: '0',
          colorScheme: schemeOf(options().appearance),
        });
        window.addEventListener('message', hear);
        loadTimer = setTimeout(() => {
          emit('loaderror', {
            error: { type: 'api_error', message: 'The card form did not load.' },
          });
        }, loadTimeoutMs);
        holder.append(frame);
      },
      unmount,
      destroy() {
        unmount();
        listeners.clear();
        forget();
      },
      on(name, listener) {
        if (!listeners.has(name)) listeners.set(name, new Set());
        listeners.get(name).add(listener);
        return this;
      },
      off(name, listener) {
        if (listener) listeners.get(name)?.delete(listener);
        else listeners.delete(name);
        return this;
      },
      update(changed) {
        tell('update', { readOnly: changed.readOnly });
      },
      focus() {
        frame?.focus();
        tell('focus', {});
      },
      clear: () => tell('clear', {}),
      collapse() {},

      _tell(type, members) {
        if (members.appearance && frame) {
          frame.style.colorScheme = schemeOf(members.appearance);
        }
        tell(type, members);
      },
      _ask(type) {
        if (frame === null || !ready) {
          const error = { type: 'api_error', message: 'The card form is not ready yet.' };
          return Promise.resolve({ error });
        }
        asked += 1;
        const id = asked;
        return new Promise((resolve) => {
          answers.set(id, resolve);
          tell(type, { id });
        });
      },
    };
  }

  // A browser paints an opaque background when the frame's scheme differs from its element's.
  function schemeOf(appearance) {
    if (appearance?.theme === 'night') return 'dark';
    if (appearance?.theme) return 'light';
    return 'light dark';
  }

  window.Stripe = Stripe;
})();
