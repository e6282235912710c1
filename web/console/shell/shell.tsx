import { Menu, useMantineColorScheme } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Counts } from '#operating/console/overview.schema.ts';
import { sendChange } from '../api.ts';
import { sentence, words } from '../format.ts';
import { Icon, type IconName, Logo } from '../icons.tsx';
import { Person } from '../parts/basics.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { bounded, isTyping } from '../parts/list.tsx';
import { useCan, useCounts, useSession } from '../session.tsx';
import { SearchDialog } from './search-dialog.tsx';

type Place = {
  href: string;
  label: string;
  icon: IconName;
  permission: string;
  key: string;
  count?: keyof Counts;
  urgent?: boolean;
};

type Group = { title: string | null; places: Place[] };

const groups: Group[] = [
  {
    title: null,
    places: [
      { href: '/', label: 'Overview', icon: 'overview', permission: 'overview.read', key: 'o' },
    ],
  },
  {
    title: 'Payments',
    places: [
      {
        href: '/checkouts',
        label: 'Checkouts',
        icon: 'checkouts',
        permission: 'checkouts.read',
        key: 'c',
      },
      {
        href: '/refunds',
        label: 'Refunds',
        icon: 'refunds',
        permission: 'refunds.read',
        key: 'r',
        count: 'refunds_to_review',
      },
      {
        href: '/overdue',
        label: 'Overdue',
        icon: 'overdue',
        permission: 'instalments.read',
        key: 'd',
        count: 'overdue',
      },
      {
        href: '/callbacks',
        label: 'Callbacks',
        icon: 'callbacks',
        permission: 'callbacks.read',
        key: 'b',
        count: 'callbacks_exhausted',
      },
    ],
  },
  {
    title: 'Money',
    places: [
      {
        href: '/disputes',
        label: 'Disputes',
        icon: 'disputes',
        permission: 'disputes.read',
        key: 's',
        count: 'disputes_to_answer',
      },
      {
        href: '/payouts',
        label: 'Payouts',
        icon: 'payouts',
        permission: 'payouts.read',
        key: 'y',
        count: 'payouts_to_approve',
      },
      {
        href: '/reconciliation',
        label: 'Reconciliation',
        icon: 'reconciliation',
        permission: 'differences.read',
        key: 'n',
      },
    ],
  },
  {
    title: 'Set-up',
    places: [
      {
        href: '/merchants',
        label: 'Merchants',
        icon: 'merchants',
        permission: 'merchants.read',
        key: 'm',
      },
      {
        href: '/integrations',
        label: 'Integrations',
        icon: 'integrations',
        permission: 'integrations.read',
        key: 'i',
      },
    ],
  },
  {
    title: 'Oversight',
    places: [
      {
        href: '/alerts',
        label: 'Alerts',
        icon: 'alerts',
        permission: 'alerts.read',
        key: 'a',
        count: 'alerts',
        urgent: true,
      },
      { href: '/audit', label: 'Audit', icon: 'audit', permission: 'audit.read', key: 'u' },
      { href: '/people', label: 'People', icon: 'people', permission: 'people.read', key: 'p' },
    ],
  },
];

export function Shell({ children }: { children: ReactNode }) {
  const [location] = useLocation();
  const [menuShown, setMenuShown] = useState(false);
  const [searching, setSearching] = useState(false);
  const [keysShown, setKeysShown] = useState(false);
  const main = useRef<HTMLElement>(null);
  const can = useCan();
  const { sandbox } = useSession();
  const allowed = groups
    .map(({ title, places }) => ({
      title,
      places: places.filter(({ permission }) => can(permission)),
    }))
    .filter(({ places }) => places.length > 0);

  // A new page is read from its top, by people and by screen readers.
  const before = useRef(location);
  useEffect(() => {
    if (before.current === location) return;
    before.current = location;
    setMenuShown(false);
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
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
        <Link href="/" className="brand">
          <Logo /> Tranche {sandbox && <span className="chip">Sandbox</span>}
        </Link>
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
        <Link href="/" className="brand">
          <Logo /> Tranche {sandbox && <span className="chip">Sandbox</span>}
        </Link>
        <button type="button" className="finder" onClick={() => setSearching(true)}>
          <Icon name="search" /> Search <kbd>/</kbd>
        </button>
        <Navigation groups={allowed} location={location} />
        <Who showKeys={() => setKeysShown(true)} />
      </aside>
      <main className="main" id="main" ref={main} tabIndex={-1}>
        <div className="page">{children}</div>
      </main>
      <SearchDialog opened={searching} close={() => setSearching(false)} />
      <KeysDialog groups={allowed} opened={keysShown} close={() => setKeysShown(false)} />
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
      if (isTyping(event) || document.querySelector('[role="dialog"]')) return;
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
  return (
    <nav className="nav" aria-label="Pages">
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

function KeysDialog(props: { groups: Group[]; opened: boolean; close: () => void }) {
  return (
    <Dialog opened={props.opened} close={props.close} title="Keys">
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

function Who({ showKeys }: { showKeys: () => void }) {
  const { person, scope } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const leave = async () => {
    await sendChange('DELETE', '/api/session').catch(() => {});
    // A full load forgets everything that was read in this session.
    window.location.assign('/');
  };
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
          <Menu.Divider />
          <Menu.Label>Colours</Menu.Label>
          {(['auto', 'light', 'dark'] as const).map((scheme) => (
            <Menu.Item
              key={scheme}
              onClick={() => setColorScheme(scheme)}
              rightSection={colorScheme === scheme ? <Icon name="check" /> : null}
            >
              {scheme === 'auto' ? 'As the system' : sentence(scheme)}
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
