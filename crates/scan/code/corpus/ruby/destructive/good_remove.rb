require "fileutils"

FileUtils.rm_rf("tmp/cache")
