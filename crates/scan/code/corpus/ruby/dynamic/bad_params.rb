class PagesController
  def show
    eval(params[:expression])
  end
end
