import {
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  type VariantColorsResolver,
} from '@mantine/core';

// The colours are variables in console.css, where light and dark differ. Mantine accepts a colour's
// name only with a tuple of ten shades, so all ten are the same variable.
const tuple = (name: string): MantineColorsTuple => {
  const value = `var(--${name})`;
  return [value, value, value, value, value, value, value, value, value, value];
};

const resolveColors: VariantColorsResolver = (input) => {
  const tone = input.color === 'danger' ? 'danger' : 'accent';
  const border = '1px solid transparent';
  if (input.variant === 'filled') {
    const color = 'var(--on-accent)';
    return { background: `var(--${tone})`, hover: `var(--${tone}-strong)`, color, border };
  }
  if (input.variant === 'light') {
    const background = `var(--${tone}-ground)`;
    return { background, hover: background, color: `var(--${tone})`, border };
  }
  if (input.variant === 'subtle') {
    const hover = `var(--${tone}-ground)`;
    return { background: 'transparent', hover, color: `var(--${tone})`, border };
  }
  if (input.variant === 'default') {
    const edge = '1px solid var(--control-line)';
    const color = input.color === 'danger' ? 'var(--danger)' : 'var(--ink)';
    return { background: 'var(--surface)', hover: 'var(--hover)', color, border: edge };
  }
  return defaultVariantColorsResolver(input);
};

export const theme = createTheme({
  primaryColor: 'accent',
  colors: { accent: tuple('accent'), danger: tuple('danger') },
  variantColorResolver: resolveColors,
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Select: { defaultProps: { checkIconPosition: 'right', allowDeselect: false } },
    Tooltip: { defaultProps: { openDelay: 250, withArrow: false } },
    Notification: {
      defaultProps: { closeButtonProps: { 'aria-label': 'Close the message' } },
    },
    Menu: { defaultProps: { shadow: 'md', transitionProps: { duration: 100 } } },
  },
});
