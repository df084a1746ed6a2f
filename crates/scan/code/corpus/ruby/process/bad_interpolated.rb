def convert(name)
  system("convert #{name} out.png")
end
