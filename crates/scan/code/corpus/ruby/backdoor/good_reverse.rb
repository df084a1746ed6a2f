require "socket"

client = TCPSocket.new("localhost", 6379)
client.puts "PING"
puts client.gets
