require_relative 'signing'

$stdin.each_line do |line|
  key, body, signature = line.chomp.split("\t", -1).map { |field| field.unpack1('m') }
  puts "#{Signing.sign(body, key)} #{Signing.verify(body, signature.empty? ? nil : signature, ['other', key])}"
end
