import Type from 'typebox';

const ErrorObject = Type.Object(
  {
    status: Type.String({ pattern: '^[45]\\d\\d$', description: 'The HTTP status, as a string.' }),
    code: Type.Enum(
      [
        'bad_request',
        'unauthorized',
        'not_found',
        'unprocessable_entity',
        'internal_server_error',
        'service_unavailable',
      ],
      { type: 'string', description: 'The kind of error, for programs.' },
    ),
    title: Type.String({ description: 'The kind of error, for people.' }),
    detail: Type.String({ description: 'A sentence that says exactly what is wrong.' }),
  },
  { title: 'Error', description: 'One problem with the request.' },
);

export const Errors = Type.Object(
  { errors: Type.Array(ErrorObject, { minItems: 1 }) },
  { title: 'Errors', description: 'Why a request was refused: one error object per problem.' },
);

export const RateLimitedBody = Type.Object(
  {
    error: Type.String({
      description: 'Ends in a hint, `Try again in N seconds.`, where N is the whole window.',
    }),
  },
  { title: 'RateLimited', description: 'Too many requests. The only error without `errors`.' },
);
