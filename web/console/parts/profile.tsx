import { Button, Select, Textarea, TextInput } from '@mantine/core';
import { useRef, useState } from 'react';
import type { MerchantDetails } from '#operating/operations/merchant.schema.ts';
import { languageNames, languages } from '#platform/shared/language.ts';
import { logoBounds } from '#platform/shared/uploads.ts';
import { changesOf } from '../changes.ts';
import { useCan } from '../session.tsx';
import { SingleActionDialog } from './actions.tsx';
import { Card, Facts, Notice } from './basics.tsx';
import { useText } from './text.ts';
import { base64Of, shrinkImage } from './upload.ts';

/** The facts that pages, mails and receipts show to shoppers. */
export function ProfileCard({ of: merchant }: { of: MerchantDetails }) {
  const can = useCan();
  const [editing, setEditing] = useState(false);
  const { contact, address, vat_number, logo_url } = merchant;
  return (
    <Card
      title="Shown to shoppers"
      aside={
        can('merchants.change') && (
          <Button size="xs" variant="default" onClick={() => setEditing(true)}>
            Change…
          </Button>
        )
      }
    >
      {!contact && !address && !vat_number && !logo_url && (
        <p className="quiet">
          Only the name is set. A logo, a contact, an address and a VAT number appear on the payment
          page, the plan, e-mails and receipts.
        </p>
      )}
      <Facts
        rows={[
          ['Logo', logo_url && <Logo src={logo_url} of={merchant} />],
          ['Contact', contact],
          ['Address', address && <span className="lines-of">{address}</span>],
          ['VAT number', vat_number],
          ['Statements in', languageNames[merchant.language]],
        ]}
      />
      {editing && <ChangeProfile of={merchant} close={() => setEditing(false)} />}
    </Card>
  );
}

const Logo = ({ src, of: { name } }: { src: string; of: { name: string } }) => (
  <img className="shop-logo" src={src} alt={`Logo of ${name}`} />
);

const typed = (text: string) => (text.trim() === '' ? null : text.trim());

function ChangeProfile({ of, close }: { of: MerchantDetails; close: () => void }) {
  // The merchant as it was when the dialog opened; the page keeps refreshing it.
  const [merchant] = useState(of);
  const [contact, contactField] = useText(merchant.contact ?? '');
  const [address, addressField] = useText(merchant.address ?? '');
  const [vat, vatField] = useText(merchant.vat_number ?? '');
  const [language, setLanguage] = useState(merchant.language);
  // The digest of the logo, or the content of a new one.
  const [logo, setLogo] = useState(merchant.logo);
  const lines = address.split('\n').map((line) => line.trim());
  const changes = changesOf(
    merchant,
    {
      ...merchant,
      contact: typed(contact),
      address: typed(lines.filter((line) => line !== '').join('\n')),
      vat_number: typed(vat),
      language,
      logo,
    },
    ['contact', 'address', 'vat_number', 'language', 'logo'],
  );
  return (
    <SingleActionDialog<MerchantDetails>
      title={`What shoppers read about ${merchant.name}`}
      what={`Change ${merchant.name}`}
      method="PATCH"
      path={`/api/merchants/${merchant.id}`}
      body={changes}
      said={() => 'Pages, e-mails and receipts show it from now on.'}
      disabled={changes === null}
      close={close}
    >
      <LogoInput
        of={merchant}
        src={logo === merchant.logo ? merchant.logo_url : logo && `data:image/png;base64,${logo}`}
        onChange={setLogo}
      />
      <TextInput
        label="Contact"
        description="An e-mail address, a phone number or an https address."
        maxLength={200}
        {...contactField}
      />
      <Textarea
        label="Address"
        description="Up to six lines."
        autosize
        minRows={3}
        maxRows={6}
        maxLength={300}
        {...addressField}
      />
      <TextInput label="VAT number" maxLength={20} {...vatField} />
      <Select
        label="Language of its statements"
        data={languages.map((value) => ({ value, label: languageNames[value] }))}
        value={language}
        allowDeselect={false}
        onChange={(value) => setLanguage(value ?? language)}
      />
    </SingleActionDialog>
  );
}

/** Chooses an image, makes it fit, and shows it as shoppers will see it. */
function LogoInput(props: {
  of: MerchantDetails;
  src: string | null;
  onChange: (content: string | null) => void;
}) {
  const { of: merchant, src, onChange } = props;
  const input = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const choose = async (file: File) => {
    setProblem(null);
    try {
      onChange(await base64Of(await fit(file)));
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <div className="stack tight">
      <strong className="small">Logo</strong>
      <div className="row-of">
        {src === null ? <span className="quiet">None</span> : <Logo src={src} of={merchant} />}
        <Button
          size="xs"
          variant="default"
          aria-label={src === null ? 'Choose a logo' : 'Choose another logo'}
          onClick={() => input.current?.click()}
        >
          Choose…
        </Button>
        {src !== null && (
          <Button
            size="xs"
            variant="subtle"
            aria-label="Remove the logo"
            onClick={() => onChange(null)}
          >
            Remove
          </Button>
        )}
      </div>
      <span className="quiet small">A PNG or JPEG. A large image is made smaller.</span>
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      <input
        ref={input}
        type="file"
        hidden
        aria-label="Logo"
        accept="image/png,image/jpeg"
        onChange={(event) => {
          const [chosen] = event.currentTarget.files ?? [];
          event.currentTarget.value = '';
          if (chosen) void choose(chosen);
        }}
      />
    </div>
  );
}

/** Larger files are not logos, and could keep the browser busy for a long time. */
const chosenBytesMax = 10_000_000;

/** A small PNG of the image. An image with many colours is reduced until it fits. */
async function fit(file: File): Promise<Blob> {
  if (!['image/png', 'image/jpeg'].includes(file.type)) {
    throw new Error('Choose a PNG or a JPEG. Other kinds cannot be used.');
  }
  if (file.size > chosenBytesMax) throw new Error('This file is larger than 10 MB.');
  const { bytesMax, widthMax, heightMax } = logoBounds;
  for (const scale of [1, 0.75, 0.5]) {
    const max = { width: widthMax * scale, height: heightMax * scale };
    const image = await shrinkImage(file, max, 'image/png');
    if (image.size <= bytesMax) return image;
  }
  throw new Error(
    `This image is too detailed: even at half size it is larger than ${bytesMax / 1000} kB. Choose a simpler one.`,
  );
}
