import { type Site, writePage } from './page.ts';

/** The page of the signature doctor. web/docs/doctor.ts works entirely in the browser. */
export function writeDoctor(site: Site, contents: string): string {
  const { environment } = site;
  return writePage(site, {
    title: 'Signature doctor',
    part: '/docs/signature',
    contentsTitle: 'Guides',
    contents,
    script: 'doctor.js',
    main: `<div class="doctor" data-environment="${environment}">
<h1>Signature doctor</h1>
<p class="intro">Paste the body and the <code>X-Signature</code> header of a request that was refused, or of a callback that you cannot verify, and your signing key. The doctor says which mistake was made. <strong>Nothing leaves this page</strong>: your browser computes everything, and the page may not connect to any server.</p>
<noscript><p class="note">This page works in your browser and needs JavaScript.</p></noscript>
<form autocomplete="off">
<div class="field-row">
<label for="body">Body</label>
<p id="body-hint">Exactly as it was sent or received, with every space and line break.</p>
<textarea id="body" name="body" rows="7" spellcheck="false" autocapitalize="off" aria-describedby="body-hint"></textarea>
</div>
<div class="field-row">
<label for="header">Header</label>
<p id="header-hint">The value of <code>X-Signature</code>.</p>
<textarea id="header" name="header" rows="2" spellcheck="false" autocapitalize="off" aria-describedby="header-hint"></textarea>
</div>
<div class="field-row">
<label for="key">Signing key</label>
<p id="key-hint">Begins with <code>sig_${environment}_</code>. It stays in this tab.</p>
<textarea id="key" name="key" rows="1" spellcheck="false" autocapitalize="off" aria-describedby="key-hint"></textarea>
</div>
<details class="more"><summary>Was it the client secret?</summary>
<div class="field-row">
<label for="secret">Client secret</label>
<p id="secret-hint">Optional: with it the doctor can tell whether you used it as the key.</p>
<textarea id="secret" name="secret" rows="1" spellcheck="false" autocapitalize="off" aria-describedby="secret-hint"></textarea>
</div>
</details>
</form>
<div class="examples"><p id="examples">Try an example</p><div role="group" aria-labelledby="examples"></div></div>
<section class="outcome" aria-labelledby="outcome-title">
<h2 id="outcome-title">Result</h2>
<div id="outcome" role="status"><p class="quiet">Fill in the three fields.</p></div>
</section>
</div>`,
  });
}
