package peer;

import jakarta.batch.api.AbstractBatchlet;
import jakarta.enterprise.context.Dependent;
import jakarta.inject.Named;

@Named
@Dependent
public class Nothing extends AbstractBatchlet {
    @Override
    public String process() {
        return "DONE";
    }
}
