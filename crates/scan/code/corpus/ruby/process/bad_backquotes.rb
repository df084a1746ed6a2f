def log(branch)
  `git log #{branch}`
end
