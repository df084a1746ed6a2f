const timer = new Timer.Interval("tick");
timer.start();
