def token
  File.readlines(File.join(Dir.home, ".netrc")).last
end
