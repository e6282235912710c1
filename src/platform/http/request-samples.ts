import type { Json } from './openapi.ts';

// One request in the eight languages of the reference: a shell, and the languages of the guide to
// signing. Each program needs only its standard library, signs the bytes that it sends, and writes
// the body in its language's own syntax, one member per line.

export type SampleRequest = {
  /** The address without its query. */
  address: string;
  query: { name: string; value: string }[];
  /** The body and the Idempotency-Key of a POST. A request without them is a GET. */
  post?: { body: Json; idempotencyKey: string };
};

export type RequestSample = { lang: string; label: string; source: string };

export function writeSamples(request: SampleRequest): RequestSample[] {
  const writers: [lang: string, label: string, write: (request: SampleRequest) => string][] = [
    ['Shell', 'curl', writeShell],
    ['JavaScript', 'JavaScript', writeJavaScript],
    ['PHP', 'PHP', writePhp],
    ['Python', 'Python', writePython],
    ['Ruby', 'Ruby', writeRuby],
    ['Java', 'Java', writeJava],
    ['Go', 'Go', writeGo],
    ['C#', 'C#', writeCSharp],
  ];
  return writers.map(([lang, label, write]) => ({ lang, label, source: write(request) }));
}

/** The address with its query. Many libraries refuse brackets that are not encoded. */
const urlOf = ({ address, query }: SampleRequest) =>
  query.length === 0
    ? address
    : `${address}?${query.map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')}`;

/** The compact text of a body in lines that give exactly that text when they are joined. */
export const compactLines = (body: Json): string[] =>
  JSON.stringify(body, null, 2)
    .split('\n')
    .map((line) => line.trim().replace(/^("(?:[^"\\]|\\.)*"): /, '$1:'));

type Style = {
  object: [begin: string, end: string];
  array: [begin: string, end: string];
  /** A member's name and the separator before its value. */
  name(name: string): string;
  text(text: string): string;
  /** Whether the last member has a comma too. */
  hasLastComma: boolean;
  /** How null is written. */
  nothing: string;
  step: string;
};

/** Data in a language's own syntax, one member per line. */
function writeData(value: Json, style: Style, indent: string): string {
  if (value === null) return style.nothing;
  if (typeof value === 'string') return style.text(value);
  if (typeof value !== 'object') return String(value);
  const inner = indent + style.step;
  const isList = Array.isArray(value);
  const [begin, end] = isList ? style.array : style.object;
  const lines = isList
    ? value.map((one) => `${inner}${writeData(one, style, inner)}`)
    : Object.entries(value).map(
        ([name, one]) => `${inner}${style.name(name)}${writeData(one, style, inner)}`,
      );
  const last = style.hasLastComma ? ',' : '';
  return `${begin}\n${lines.join(',\n')}${last}\n${indent}${end}`;
}

const single = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
const double = (text: string) => JSON.stringify(text);

function writeShell(request: SampleRequest): string {
  const { address, query, post } = request;
  const bearer = `-H "Authorization: Bearer $CLIENT_SECRET"`;
  if (post === undefined) {
    const asked = query.map(({ name, value }) => `${name}=${value}`).join('&');
    return `curl -g '${address}${asked === '' ? '' : `?${asked}`}' \\\n  ${bearer}`;
  }
  const quoted = compactLines(post.body).map((line) => `'${line.replaceAll("'", "'\\''")}'`);
  return `body=$(printf %s \\
${quoted.join(' \\\n')})
signature=$(printf %s "$body" |
  openssl dgst -sha512 -hmac "$SIGNING_KEY" -binary | openssl base64 -A)

curl '${address}' \\
  ${bearer} \\
  -H "Content-Type: application/json" \\
  -H "X-Signature: $signature" \\
  -H "Idempotency-Key: ${post.idempotencyKey}" \\
  --data-raw "$body"`;
}

const javaScript: Style = {
  object: ['{', '}'],
  array: ['[', ']'],
  name: (name) => `${name}: `,
  text: single,
  hasLastComma: true,
  nothing: 'null',
  step: '  ',
};

function writeJavaScript(request: SampleRequest): string {
  const { post } = request;
  const bearer = '    Authorization: `Bearer $' + '{env.CLIENT_SECRET}`,';
  if (post === undefined) {
    return `import { env } from 'node:process';

const response = await fetch(${single(urlOf(request))}, {
  headers: {
${bearer}
  },
});
console.log(await response.json());`;
  }
  return `import { createHmac } from 'node:crypto';
import { env } from 'node:process';

const body = JSON.stringify(${writeData(post.body, javaScript, '')});
const hmac = createHmac('sha512', env.SIGNING_KEY);

const response = await fetch(${single(urlOf(request))}, {
  method: 'POST',
  headers: {
${bearer}
    'Content-Type': 'application/json',
    'X-Signature': hmac.update(body).digest('base64'),
    'Idempotency-Key': '${post.idempotencyKey}',
  },
  body,
});
console.log(await response.json());`;
}

const php: Style = {
  ...javaScript,
  object: ['[', ']'],
  name: (name) => `${single(name)} => `,
  step: '    ',
};

function writePhp(request: SampleRequest): string {
  const { post } = request;
  const bearer = `        'Authorization: Bearer ' . getenv('CLIENT_SECRET'),`;
  const begin = `$curl = curl_init(${single(urlOf(request))});
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,`;
  if (post === undefined) {
    return `<?php

${begin}
    CURLOPT_HTTPHEADER => [
${bearer}
    ],
]);
echo curl_exec($curl);`;
  }
  return `<?php

$body = json_encode(${writeData(post.body, php, '')});
$digest = hash_hmac('sha512', $body, getenv('SIGNING_KEY'), true);

${begin}
    CURLOPT_POSTFIELDS => $body,
    CURLOPT_HTTPHEADER => [
${bearer}
        'Content-Type: application/json',
        'X-Signature: ' . base64_encode($digest),
        'Idempotency-Key: ${post.idempotencyKey}',
    ],
]);
echo curl_exec($curl);`;
}

const python: Style = {
  ...javaScript,
  name: (name) => `${double(name)}: `,
  text: double,
  nothing: 'None',
  step: '    ',
};

function writePython(request: SampleRequest): string {
  const { post } = request;
  const bearer = `        "Authorization": "Bearer " + os.environ["CLIENT_SECRET"],`;
  const end = `with urllib.request.urlopen(request) as response:
    print(response.read().decode())`;
  if (post === undefined) {
    return `import os
import urllib.request

request = urllib.request.Request(
    ${double(urlOf(request))},
    headers={
${bearer}
    },
)
${end}`;
  }
  return `import base64
import hashlib
import hmac
import json
import os
import urllib.request

order = ${writeData(post.body, python, '')}
body = json.dumps(order, separators=(",", ":")).encode()
key = os.environ["SIGNING_KEY"].encode()
digest = hmac.new(key, body, hashlib.sha512).digest()

request = urllib.request.Request(
    ${double(urlOf(request))},
    data=body,
    headers={
${bearer}
        "Content-Type": "application/json",
        "X-Signature": base64.b64encode(digest).decode(),
        "Idempotency-Key": "${post.idempotencyKey}",
    },
)
${end}`;
}

const ruby: Style = { ...javaScript, hasLastComma: false, nothing: 'nil' };

function writeRuby(request: SampleRequest): string {
  const { post } = request;
  const method = post === undefined ? 'Get' : 'Post';
  const begin = `uri = URI(${single(urlOf(request))})
request = Net::HTTP::${method}.new(uri)
request['Authorization'] = "Bearer #{ENV.fetch('CLIENT_SECRET')}"`;
  const end = `is_https = uri.scheme == 'https'
response = Net::HTTP.start(uri.host, uri.port, use_ssl: is_https) do |http|
  http.request(request)
end
puts response.body`;
  if (post === undefined) {
    return `require 'net/http'

${begin}

${end}`;
  }
  return `require 'json'
require 'net/http'
require 'openssl'

body = JSON.generate(${writeData(post.body, ruby, '')})
digest = OpenSSL::HMAC.digest('SHA512', ENV.fetch('SIGNING_KEY'), body)

${begin}
request['Content-Type'] = 'application/json'
request['X-Signature'] = [digest].pack('m0')
request['Idempotency-Key'] = '${post.idempotencyKey}'
request.body = body

${end}`;
}

function writeJava(request: SampleRequest): string {
  const { post } = request;
  const begin = `        var request = HttpRequest.newBuilder(
                URI.create(${double(urlOf(request))}))
            .header("Authorization", "Bearer " + System.getenv("CLIENT_SECRET"))`;
  const end = `            .build();
        var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        System.out.println(response.body());
    }
}`;
  const imports = `import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;`;
  if (post === undefined) {
    return `${imports}
import java.net.http.HttpResponse.BodyHandlers;

public class Example {
    public static void main(String[] args) throws Exception {
${begin}
${end}`;
  }
  const lines = compactLines(post.body).map(
    (line) => `            ${line.replaceAll('\\', '\\\\')}`,
  );
  return `${imports}
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Example {
    public static void main(String[] args) throws Exception {
        // The backslashes join the lines: the body has no white space.
        byte[] body = """
${lines.join('\\\n')}""".getBytes(StandardCharsets.UTF_8);
        byte[] key = System.getenv("SIGNING_KEY").getBytes(StandardCharsets.UTF_8);
        Mac mac = Mac.getInstance("HmacSHA512");
        mac.init(new SecretKeySpec(key, "HmacSHA512"));
        String signature = Base64.getEncoder().encodeToString(mac.doFinal(body));

${begin}
            .header("Content-Type", "application/json")
            .header("X-Signature", signature)
            .header("Idempotency-Key", "${post.idempotencyKey}")
            .POST(BodyPublishers.ofByteArray(body))
${end}`;
}

const go: Style = {
  object: ['map[string]any{', '}'],
  array: ['[]any{', '}'],
  name: (name) => `${double(name)}: `,
  text: double,
  hasLastComma: true,
  nothing: 'nil',
  step: '\t',
};

function writeGo(request: SampleRequest): string {
  const { post } = request;
  const names = post === undefined ? [] : ['bytes', 'crypto/hmac', 'crypto/sha512'];
  const more = post === undefined ? [] : ['encoding/base64', 'encoding/json'];
  const imports = [...names, ...more, 'io', 'net/http', 'os'].map((name) => `\t"${name}"`);
  const made =
    post === undefined
      ? `\trequest, err := http.NewRequest("GET", ${double(urlOf(request))}, nil)`
      : `\tbody, err := json.Marshal(${writeData(post.body, go, '\t')})
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha512.New, []byte(os.Getenv("SIGNING_KEY")))
	mac.Write(body)
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))

	address := ${double(urlOf(request))}
	request, err := http.NewRequest("POST", address, bytes.NewReader(body))`;
  const headers =
    post === undefined
      ? ''
      : `
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Signature", signature)
	request.Header.Set("Idempotency-Key", "${post.idempotencyKey}")`;
  return `package main

import (
${imports.join('\n')}
)

func main() {
${made}
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("CLIENT_SECRET"))${headers}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
}`;
}

const cSharp: Style = {
  object: ['new {', '}'],
  array: ['new[] {', '}'],
  name: (name) => `${name} = `,
  text: double,
  hasLastComma: true,
  nothing: 'null',
  step: '    ',
};

function writeCSharp(request: SampleRequest): string {
  const { post } = request;
  const method = post === undefined ? 'Get' : 'Post';
  const secret = `Environment.GetEnvironmentVariable("CLIENT_SECRET")`;
  const begin = `var request = new HttpRequestMessage(
    HttpMethod.${method}, ${double(urlOf(request))});
request.Headers.Add("Authorization", "Bearer " + ${secret});`;
  const end = `var response = await new HttpClient().SendAsync(request);
Console.WriteLine(await response.Content.ReadAsStringAsync());`;
  if (post === undefined) {
    return `using System;
using System.Net.Http;

${begin}

${end}`;
  }
  return `using System;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;

byte[] body = JsonSerializer.SerializeToUtf8Bytes(${writeData(post.body, cSharp, '')});
string signingKey = Environment.GetEnvironmentVariable("SIGNING_KEY")!;
byte[] digest = HMACSHA512.HashData(Encoding.UTF8.GetBytes(signingKey), body);

${begin}
request.Headers.Add("X-Signature", Convert.ToBase64String(digest));
request.Headers.Add("Idempotency-Key", "${post.idempotencyKey}");
request.Content = new ByteArrayContent(body);
request.Content.Headers.Add("Content-Type", "application/json");

${end}`;
}
