import type { Config } from '#config.ts';
import type { TraceSettings } from '#platform/tracing/otlp-exporter.ts';
import { isAddress, isLocal, type Reader } from './reader.ts';

// Reads the settings with which operators watch the service: its log, its alerts and its traces.

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

type Observing = Pick<Config, 'logLevel' | 'alertWebhookUrl' | 'alertWebhookSecret' | 'traces'>;

export function readObserving(reader: Reader): Observing {
  return {
    logLevel: reader.choice('LOG_LEVEL', logLevels, 'info'),
    alertWebhookUrl: readAlertWebhookUrl(reader),
    alertWebhookSecret: readAlertWebhookSecret(reader),
    traces: readTraces(reader),
  };
}

function readAlertWebhookUrl({ text, problem, refuseInsecure }: Reader): string | null {
  const url = text('ALERT_WEBHOOK_URL') ?? null;
  if (url !== null && !isAddress(url, /^https?:\/\//)) {
    problem('ALERT_WEBHOOK_URL must be an http or https address.');
  } else if (url?.startsWith('http:') && !isLocal(new URL(url).hostname)) {
    refuseInsecure('alerts-plaintext', 'ALERT_WEBHOOK_URL must be https in production.');
  }
  return url;
}

const secretCharactersMin = 32;

function readAlertWebhookSecret({ text, problem, isProduction }: Reader): string | null {
  const secret = text('ALERT_WEBHOOK_SECRET') ?? null;
  if (secret === null && isProduction && text('ALERT_WEBHOOK_URL') !== undefined) {
    problem('ALERT_WEBHOOK_SECRET is missing: alerts to ALERT_WEBHOOK_URL are signed with it.');
  }
  if (secret !== null && secret.length < secretCharactersMin) {
    problem(`ALERT_WEBHOOK_SECRET must have at least ${secretCharactersMin} characters.`);
  }
  return secret;
}

/** The standard settings for OpenTelemetry exporters that we support. */
function readTraces({ text, problem, refuseInsecure }: Reader): TraceSettings | null {
  const endpoint = text('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (endpoint === undefined) return null;
  if (!isAddress(endpoint, /^https?:\/\//)) {
    problem('OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https address.');
    return null;
  }
  if (endpoint.startsWith('http:') && !isLocal(new URL(endpoint).hostname)) {
    refuseInsecure('traces-plaintext', 'OTEL_EXPORTER_OTLP_ENDPOINT must be https in production.');
  }
  const pairs = (text('OTEL_EXPORTER_OTLP_HEADERS') ?? '').split(',').filter((pair) => pair.trim());
  // The error does not repeat the setting, because it can contain a password.
  const isPairs = pairs.every((pair) => /^[\w-]+=[\x20-\x7e]+$/.test(pair.trim()));
  if (!isPairs)
    problem('OTEL_EXPORTER_OTLP_HEADERS must be pairs such as name=value, separated by commas.');
  const ratio = Number(text('OTEL_TRACES_SAMPLER_ARG') ?? '1');
  if (!(ratio >= 0 && ratio <= 1)) problem('OTEL_TRACES_SAMPLER_ARG must be from 0 to 1.');
  return {
    endpoint,
    headers: Object.fromEntries(
      isPairs ? pairs.map((pair) => pair.trim().split(/=(.*)/s).slice(0, 2)) : [],
    ),
    serviceName: text('OTEL_SERVICE_NAME') ?? 'tranche',
    ratio,
  };
}
