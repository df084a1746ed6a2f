require "base64"

picture = Base64.decode64(File.read("picture.txt"))
puts picture.size
