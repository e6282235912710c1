import { createHmac } from 'node:crypto';
import http from 'node:http';

// Talks to a service over real connections, like a merchant's server.

export type Credentials = { id: string; client_secret: string; signing_key: string };

export type HttpAnswer = {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: assertions check the answer.
  body: any;
  headers: http.IncomingHttpHeaders;
};

/** Sends one request over a real connection. Rejects if no complete answer came. */
export function request(
  url: string,
  options: {
    method?: string;
    headers?: Record<string, string>;
    body?: string;
    agent?: http.Agent;
    signal?: AbortSignal;
  } = {},
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body = '', agent = false, signal } = options;
    const sent = http.request(
      url,
      { method, headers, agent, ...(signal && { signal }) },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => {
          const isJson = response.headers['content-type']?.includes('json');
          resolve({
            status: response.statusCode ?? 0,
            body: isJson ? JSON.parse(text) : text,
            headers: response.headers,
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

export function authorised(credentials: Credentials): Record<string, string> {
  return { authorization: `Bearer ${credentials.client_secret}` };
}

/** Sends a signed POST, as a merchant's server would. */
export function post(
  url: string,
  credentials: Credentials,
  body: object,
  options: { headers?: Record<string, string>; agent?: http.Agent; signal?: AbortSignal } = {},
): Promise<HttpAnswer> {
  const text = JSON.stringify(body);
  const signature = createHmac('sha512', credentials.signing_key).update(text).digest('base64');
  return request(url, {
    method: 'POST',
    body: text,
    headers: {
      ...authorised(credentials),
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      'x-signature': signature,
      ...options.headers,
    },
    ...(options.agent && { agent: options.agent }),
    ...(options.signal && { signal: options.signal }),
  });
}
