def log
  `git log --oneline`
end
