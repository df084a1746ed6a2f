class PagesController
  def show
    @page = params[:page].to_i
  end
end
