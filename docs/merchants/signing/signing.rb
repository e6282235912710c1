require 'openssl'

module Signing
  # Serialise once, sign that text, send that text: JSON.generate(value), not pretty_generate.
  def self.sign(body, signing_key)
    [OpenSSL::HMAC.digest('SHA512', signing_key, body)].pack('m0')
  end

  # Verify the raw bytes, before anything parses them: request.raw_post in Rails,
  # request.body.read in Rack. Pass both keys during a rotation, otherwise a list of one.
  def self.verify(body, signature, signing_keys)
    signing_keys.any? { |key| OpenSSL.secure_compare(sign(body, key), signature.to_s) }
  end
end
