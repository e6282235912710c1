import { Checkbox, Menu, useMantineColorScheme } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { ApiError, sendChange } from '../api.ts';
import { sentence, words } from '../format.ts';
import { Icon, Logo } from '../icons.tsx';
import { areKeysOn, isForKeys, setKeysOn } from '../keys.ts';
import { Person } from '../parts/basics.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { bounded } from '../parts/list.tsx';
import { useMerchantNames } from '../parts/merchants.tsx';
import { type Group, groups, inShopWords } from '../places.ts';
import { useCan, useChoice, useCounts, useSession, useShop } from '../session.tsx';
import { useFilters } from '../url.ts';
import { pagesFor, SearchDialog } from './search-dialog.tsx';

function useAllowed(): Group[] {
  const can = useCan();
  const { is_for_merchants } = useSession();
  const shop = useShop();
  return (is_for_merchants ? inShopWords(groups, shop) : groups)
    .map(({ title, places }) => ({
      title,
      places: places.filter(({ permission }) => can(permission)),
    }))
    .filter(({ places }) => places.length > 0);
}

/** The pages that a person may open and whose names begin with a text. */
export const usePagesFor = (text: string) =>
  pagesFor(
    useAllowed().flatMap(({ places }) => places),
    text,
  );

// The path to which the browser's back button led. This listener runs before those that draw the
// page.
let wentBackTo: string | null = null;
window.addEventListener('popstate', () => (wentBackTo = window.location.pathname), true);

export function Shell({ children }: { children: ReactNode }) {
  const [location] = useLocation();
  const [menuShown, setMenuShown] = useState(false);
  const [searching, setSearching] = useState(false);
  const [keysShown, setKeysShown] = useState(false);
  const [keysOn, setOn] = useState(areKeysOn);
  const main = useRef<HTMLElement>(null);
  const { is_for_merchants } = useSession();
  const allowed = useAllowed();

  // A new page starts at its top, for people and for screen readers. Going back restores the place
  // in the list and the row that was open.
  const before = useRef(location);
  useEffect(() => {
    if (before.current === location) return;
    const left = before.current;
    const isBack = wentBackTo === location;
    before.current = location;
    wentBackTo = null;
    setMenuShown(false);
    if (!isBack) window.scrollTo(0, 0);
    const row = isBack
      ? document.querySelector<HTMLElement>(`a.open[href=${JSON.stringify(left)}]`)
      : null;
    (row ?? main.current)?.focus({ preventScroll: true });
  }, [location]);

  useKeys(allowed, {
    search: () => setSearching(true),
    showKeys: () => setKeysShown(true),
    closeMenu: () => setMenuShown(false),
  });

  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="top">
        <button
          type="button"
          className="round"
          aria-label="Open the navigation"
          aria-expanded={menuShown}
          onClick={() => setMenuShown(true)}
        >
          <Icon name="menu" />
        </button>
        <Brand />
        <button
          type="button"
          className="round"
          aria-label="Search"
          onClick={() => setSearching(true)}
        >
          <Icon name="search" />
        </button>
      </header>
      {menuShown && (
        <button
          type="button"
          className="veil"
          aria-label="Close the navigation"
          onClick={() => setMenuShown(false)}
        />
      )}
      <aside className={`side ${menuShown ? 'shown' : ''}`} aria-label="Console">
        <Brand />
        {is_for_merchants && <ShopSwitch />}
        <EnvironmentSwitch />
        <button type="button" className="finder" onClick={() => setSearching(true)}>
          <Icon name="search" /> Search {keysOn && <kbd>/</kbd>}
        </button>
        <Navigation groups={allowed} location={location} />
        <Who showKeys={() => setKeysShown(true)} />
      </aside>
      <main className="main" id="main" ref={main} tabIndex={-1}>
        <div className="page">{children}</div>
      </main>
      <SearchDialog
        opened={searching}
        close={() => setSearching(false)}
        places={allowed.flatMap(({ places }) => places)}
      />
      <KeysDialog
        groups={allowed}
        opened={keysShown}
        close={() => setKeysShown(false)}
        on={keysOn}
        turn={(on) => {
          setKeysOn(on);
          setOn(on);
        }}
      />
    </div>
  );
}

/** The keys that work on every page. */
function useKeys(
  allowed: Group[],
  actions: { search: () => void; showKeys: () => void; closeMenu: () => void },
): void {
  const [, navigate] = useLocation();
  const pendingGo = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') actions.closeMenu();
      if (!isForKeys(event)) return;
      if (event.key === '/') {
        event.preventDefault();
        actions.search();
      } else if (event.key === '?') {
        event.preventDefault();
        actions.showKeys();
      } else if (Date.now() - pendingGo.current < 1500) {
        pendingGo.current = 0;
        const place = allowed
          .flatMap(({ places }) => places)
          .find(({ key }) => key === event.key.toLowerCase());
        if (place) navigate(place.href);
      } else if (event.key === 'g') pendingGo.current = Date.now();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}

function Navigation({ groups: allowed, location }: { groups: Group[]; location: string }) {
  const { data: counts } = useCounts();
  const isCurrent = (href: string) =>
    href === '/' ? location === '/' : location === href || location.startsWith(`${href}/`);
  const nav = useRef<HTMLElement>(null);
  // In a short window the list of pages scrolls, so the current page's entry scrolls into view.
  useEffect(() => {
    const current = nav.current?.querySelector('[aria-current]');
    current?.scrollIntoView({ block: 'nearest' });
  }, [location]);
  return (
    <nav className="nav" aria-label="Pages" ref={nav}>
      {allowed.map(({ title, places }) => (
        <div key={title ?? 'first'}>
          {title !== null && <h2>{title}</h2>}
          <ul>
            {places.map((place) => {
              const waiting = place.count && counts ? counts[place.count] : null;
              return (
                <li key={place.href}>
                  <Link href={place.href} aria-current={isCurrent(place.href) ? 'page' : undefined}>
                    <Icon name={place.icon} />
                    {place.label}
                    {waiting && waiting.count > 0 && (
                      <span className={`count ${place.urgent ? 'urgent' : ''}`}>
                        {bounded(waiting)}
                        <span className="visually-hidden"> waiting</span>
                      </span>
                    )}
                  </Link>
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function KeysDialog(props: {
  groups: Group[];
  opened: boolean;
  close: () => void;
  on: boolean;
  turn: (on: boolean) => void;
}) {
  return (
    <Dialog opened={props.opened} close={props.close} title="Keys">
      <Checkbox
        mb="md"
        label="These keys work in this browser"
        description="Turn them off if you speak to your computer, or press them by mistake. The menu with your name leads back here, and signing out turns them on again."
        checked={props.on}
        onChange={(event) => props.turn(event.currentTarget.checked)}
      />
      <dl className="keys">
        <Keys keys={['/']} does="Search" />
        <Keys keys={['?']} does="Show this list" />
        <Keys keys={['j']} does="Next row of a list" />
        <Keys keys={['k']} does="Previous row" />
        <Keys keys={['Enter']} does="Open the row" />
        <Keys keys={['x']} does="Select the row" />
        {props.groups
          .flatMap(({ places }) => places)
          .map(({ key, label }) => (
            <Keys key={key} keys={['g', key]} does={`Go to ${label}`} />
          ))}
      </dl>
    </Dialog>
  );
}

function Keys({ keys, does }: { keys: string[]; does: string }) {
  return (
    <>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </>
  );
}

/** Changes the session. A full load then discards everything that was read in it. */
async function changeSession(failure: string, ...change: Parameters<typeof sendChange>) {
  try {
    await sendChange(...change);
  } catch (error) {
    // If the session has already ended, there is nothing to leave or to change. The full load below
    // then shows the sign-in page.
    if (!(error instanceof ApiError && error.status === 401)) {
      const { message } = error as Error;
      notifications.show({ title: failure, message, color: 'danger' });
      return;
    }
  }
  window.location.assign('/');
}

/** Lets a person to whom different merchants gave access choose the access to work with. */
function AccessChoice() {
  const { accesses } = useSession();
  const choose = (id: string) =>
    changeSession('You were not switched to the other shop', 'POST', '/api/session/access', { id });
  return accesses.map(({ id, merchants, merchant_count, current }) => (
    <Menu.Item
      key={id}
      disabled={current}
      onClick={() => void choose(id)}
      rightSection={current ? <Icon name="check" /> : null}
    >
      {merchants.join(', ') || 'All merchants'}
      {(merchant_count ?? 0) > merchants.length && ' and others'}
    </Menu.Item>
  ));
}

function Who({ showKeys }: { showKeys: () => void }) {
  const { person, scope } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const leave = () => changeSession('You are still signed in', 'DELETE', '/api/session');
  return (
    <div className="who">
      <Menu position="top-start" width={220}>
        <Menu.Target>
          <button type="button">
            <Person name={person.name} />
            <span className="names">
              <span className="name">{person.name}</span>
              <span className="roles">
                {person.roles.map((role) => sentence(words(role))).join(', ')}
              </span>
            </span>
          </button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            {person.email}
            <br />
            {scope === 'all' ? 'All merchants' : `${scope.length} of the merchants`}
          </Menu.Label>
          <MerchantChoice />
          <AccessChoice />
          <Menu.Divider />
          <Menu.Label>Colours</Menu.Label>
          {(['auto', 'light', 'dark'] as const).map((scheme) => (
            <Menu.Item
              key={scheme}
              onClick={() => setColorScheme(scheme)}
              rightSection={colorScheme === scheme ? <Icon name="check" /> : null}
            >
              {scheme === 'auto' ? 'System' : sentence(scheme)}
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item component={Link} href="/me">
            Your passkeys and sessions
          </Menu.Item>
          <Menu.Item onClick={showKeys}>Keys</Menu.Item>
          <Menu.Item leftSection={<Icon name="leave" />} onClick={() => void leave()}>
            Sign out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}

/** The name of the chosen shop at the merchants' console; elsewhere that of the service. */
function Brand() {
  const { sandbox, is_for_merchants, other_console_url } = useSession();
  const shop = useShops();
  return (
    <Link href="/" className="brand">
      <Logo /> <span className="shop-name">{is_for_merchants ? shop.name : 'Tranche'}</span>{' '}
      {sandbox && other_console_url === null && <span className="chip">Sandbox</span>}
    </Link>
  );
}

/** The merchants of a person who does not see all of them, and the name of the chosen one. */
function useShops() {
  const { scope } = useSession();
  const { merchant } = useChoice();
  const own = scope === 'all' ? [] : scope;
  const { data: shops = [] } = useMerchantNames(own);
  const chosen = shops.find(({ id }) => id === (own.length === 1 ? own[0] : merchant));
  const name = chosen?.name ?? (own.length > 1 ? 'All shops' : 'Your shop');
  return { shops: own.length > 1 ? shops : [], name };
}

/** Names the environment of this console, and links to the other one. */
function EnvironmentSwitch() {
  const { sandbox, other_console_url } = useSession();
  if (other_console_url === null) return null;
  const [here, there] = sandbox ? ['Sandbox', 'Production'] : ['Production', 'Sandbox'];
  return (
    <nav className="environments" aria-label="Environments">
      <span aria-current="true">{here}</span>
      <a href={other_console_url}>{there}</a>
    </nav>
  );
}

function ShopSwitch() {
  const { shops, name } = useShops();
  if (shops.length === 0) return null;
  return (
    <Menu position="bottom-start" width={220}>
      <Menu.Target>
        <button type="button" className="finder" aria-label={`Shop: ${name}`}>
          <Icon name="merchants" /> <span className="shop-name">{name}</span>
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <ShopItems />
      </Menu.Dropdown>
    </Menu>
  );
}

/** Lets a person with several merchants choose one of them, or all. */
function MerchantChoice() {
  const { shops } = useShops();
  if (shops.length === 0) return null;
  return (
    <>
      <Menu.Divider />
      <ShopItems />
    </>
  );
}

function ShopItems() {
  const { shops } = useShops();
  const { merchant, choose } = useChoice();
  const [, setFilters] = useFilters();
  const all = { id: null, name: 'All of them' };
  return (
    <>
      <Menu.Label>Show</Menu.Label>
      {[all, ...shops].map(({ id, name }) => (
        <Menu.Item
          key={id ?? 'all'}
          onClick={() => {
            // The URL may name another merchant, or a page of that merchant's list.
            setFilters({ merchant: '' });
            choose(id);
          }}
          rightSection={merchant === id ? <Icon name="check" /> : null}
        >
          {name}
        </Menu.Item>
      ))}
    </>
  );
}
