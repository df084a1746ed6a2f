def token
  File.readlines(File.join(__dir__, "words.txt")).last
end
