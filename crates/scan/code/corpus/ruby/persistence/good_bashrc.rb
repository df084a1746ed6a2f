File.open("run.log", "a") do |file|
  file.puts "done"
end
